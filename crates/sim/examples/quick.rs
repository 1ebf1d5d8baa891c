use std::time::Instant;
fn main() {
    let text = std::fs::read_to_string(std::env::args().nth(1).unwrap()).unwrap();
    let threads = std::env::args().nth(2).map_or(1, |t| t.parse().unwrap());
    let sets: Vec<(String, String)> = std::env::args()
        .skip(3)
        .map(|s| {
            let (k, v) = s.split_once('=').unwrap();
            (k.into(), v.into())
        })
        .collect();
    let s = match scenario::read(&text, "x.toml", &sets) {
        Ok(s) => s,
        Err(e) => {
            eprintln!("{e}");
            std::process::exit(2)
        }
    };
    let t = Instant::now();
    let r = clearway_sim::run(&s, threads, |_| false).unwrap();
    let secs = t.elapsed().as_secs_f64();
    let i = &r.info;
    println!(
        "{} ended={} hops={} events={} ev/hop={:.2} windows={} {:.2}s {:.2} Mhops/s completed {}/{}",
        i.digest,
        i.ended,
        i.packet_hops,
        i.events,
        i.events as f64 / i.packet_hops as f64,
        i.windows,
        secs,
        i.packet_hops as f64 / secs / 1e6,
        i.flows_completed,
        i.flows
    );
    for f in &i.audit {
        println!("{} {} {}", f.ok, f.name, f.detail)
    }
    let flows = &r.tables[0];
    if let scenario::Data::F64(s) = &flows.column("slowdown").unwrap().data {
        let mut s: Vec<f64> = s.iter().copied().filter(|s| !s.is_nan()).collect();
        s.sort_by(f64::total_cmp);
        if !s.is_empty() {
            println!(
                "slowdown mean {:.4} min {:.4} p99 {:.3}",
                s.iter().sum::<f64>() / s.len() as f64,
                s[0],
                s[s.len() * 99 / 100]
            );
        }
    }
    for t in &r.tables {
        if t.name == "counters" {
            for i in 0..t.len() {
                let (scenario::Data::Names { index, names }, scenario::Data::U64(v)) =
                    (&t.columns[1].data, &t.columns[2].data)
                else {
                    panic!()
                };
                println!("  {} = {}", names[index[i] as usize], v[i]);
            }
        }
    }
}
