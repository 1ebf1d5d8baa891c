// The scenes of the page: one per system, with things to look at and to change. Names in braces stand for numbers of
// the run (`numbers.js`).

export const SCENES = [
  {
    id: "dcpim",
    title: "dcPIM's matching rounds",
    file: "crates/web/scenes/dcpim.toml",
    steps: [
      ["Before data, a match", "Hosts first agree who sends to whom: {counter.requests} requests, {counter.grants} grants "
        + "and {counter.accepts} accepts in this run. Then receivers admit each packet with a token: "
        + "{counter.tokens} tokens for {data_packets} data packets. In the picture all but the data are diamonds."],
      ["Nobody queues for long", "Look at the longest queue over time. A receiver asks for no more than its link "
        + "carries, so the longest queue of any port held {queue_max}. The slowest of {flows} messages took "
        + "{slowdown_max} times as long as alone."],
      ["Now change it", 'Write `transport = "dctcp"` and run again: these hosts send without asking. Compare the longest '
        + "queue, {queue_max} here, and the mean slowdown, {slowdown_mean} here."],
    ],
  },
  {
    id: "harmony",
    title: "Harmony's slots",
    file: "crates/web/scenes/harmony.toml",
    steps: [
      ["A reservation goes first", "Each message asks every link on its path for a slot before its data moves. "
        + "{flows} messages sent {counter.rsvps} reservations, {counter.rsvps_used} were used, and switches refused "
        + "{counter.switch_refused}. In the picture these are diamonds called Rsvp; click one for its story."],
      ["What is promised holds", "Every queue has a bound that is known before the run. The fullest link came to "
        + "{guarantee_share} of its bound; the longest queue of any port held {queue_max}."],
      ["Now change it", "Raise `load` from 0.5 to 0.9 and run again. The bounds stay what "
        + "they are: compare the longest queue, {queue_max} here, and the mean slowdown, {slowdown_mean} here."],
    ],
  },
  {
    id: "pyrrha",
    title: "Pyrrha's isolation queues under an incast",
    file: "crates/web/scenes/pyrrha.toml",
    steps: [
      ["Roots are named", "Eight senders fill the link to host 0. Its queue becomes a root of congestion: ports became "
        + "roots {counter.pyrrha_nominations} times, and {counter.pyrrha_pauses} pauses named one. In the picture "
        + "roots are rings, and what is told to hold back is dashed."],
      ["Only a root's own packets wait", "Packets for a root go to isolation queues, and others pass them. The 10 KB "
        + "messages of the class innocent cross the same switches: their mean slowdown was {slowdown_mean.innocent}, "
        + "that of the incast {slowdown_mean.incast}."],
      ["Now change it", 'Set `flow_control = "pfc"` and run again. A pause now stops all packets of a link: compare the '
        + "mean slowdown of innocent, {slowdown_mean.innocent} here."],
    ],
  },
  {
    id: "r2c2",
    title: "R2C2's broadcast on a torus",
    file: "crates/web/scenes/r2c2.toml",
    steps: [
      ["A start is told to all", "Who starts or ends a flow sends a broadcast down a tree. {counter.broadcasts} broadcasts "
        + "became {counter.broadcast_copies} packets, {counter.broadcast_copied_bytes} bytes in all, so that each of "
        + "{hosts} nodes knew all {flows} flows. In the picture, step until the diamonds called Announce spread."],
      ["Then all compute alike", "Each node works out the same rates from the same flows, and sends at them along many "
        + "paths. {flows_completed} of {flows} flows completed, at a mean slowdown of {slowdown_mean}."],
      ["Now change it", 'Let flows come ten times as often, `every = "2us"`, and run again: as many broadcasts, more '
        + "sharing. Compare the mean slowdown, {slowdown_mean} here, and the longest queue, {queue_max} here."],
    ],
  },
  {
    id: "tenants",
    title: "Three tenants under AQ",
    file: "crates/web/scenes/tenants.toml",
    steps: [
      ["Equal shares", "One tenant has one flow, one has four, one has CUBIC instead of DCTCP. Of the link to host 3 they "
        + "got {tenants}: by tenant, not by flow."],
      ["Without queues of their own", "All packets wait in one queue, which held {queue_max} at most. Augmented Queue "
        + "counts for each tenant what a queue of its own would hold, and marks or drops by that: {aq_marked} packets "
        + "were marked and {aq_dropped} dropped. Look at switch0 in the picture: one colour per flow, and one queue."],
      ["Now change it", "Write `weight = 2` in the first of the three `[[entity]]` tables and run again: its tenant gets "
        + "twice as much as each of the others. Here the one with the least got {tenant_min}."],
    ],
  },
  {
    id: "counterexample",
    title: "A counterexample to Harmony's Theorem 3.1",
    file: "python/clearway/papers/harmony/counterexample.toml",
    steps: [
      ["What the theorem says", "No more than #H (K - 1) packets wait for a link: six, with three inputs and three slots. "
        + "Here {flows} messages, one a host, each hold one slot."],
      ["Seven wait", "The longest queue of this run held {queue_max}: more than {queue_packets} full packets of 1,500 "
        + "bytes, control packets included. In the picture, look at the leaf with the longest bar."],
      ["Now change it", 'Add `service = "round_robin"` to the settings of harmony, so that a link serves its inputs in '
        + "turn, and run again. Then no more than six wait: compare with {queue_max} here."],
    ],
  },
  {
    id: "all-reduce",
    title: "A ring all-reduce",
    file: "crates/web/scenes/all-reduce.toml",
    steps: [
      ["Around the ring", "Eight ranks compute for 5 µs. Then each sends an eighth of its gradients to the next, fourteen "
        + "times: {flows} messages. Play the picture, then look at the utilisation of links below."],
      ["How fast it was", "The all-reduce took {collective_time}: {collective_bus} of bus bandwidth, as NCCL counts it, on "
        + "links of 100 Gbps."],
      ["Now change it", 'Write `algorithm = "halving_doubling"`, or add `stragglers = [{ rank = 5, factor = 3.0 }]` to the '
        + "job, and run again. Compare the time, {collective_time} here: one slow rank holds up all others."],
    ],
  },
];

// Shipped scenarios that a page can run: each is small, and names no file.
export const EXAMPLES = [
  "tiny", "dcpim-vs-tcp", "congestion-trees", "training", "gpt", "dragonfly", "dual-homed", "faults", "rails", "sustain",
  "live",
].map((name) => ({ id: name, title: `${name}.toml`, file: `examples/${name}.toml`, steps: [] }));

// Files that scenarios name, by the paths that they name them by.
export const FILES = { "counterexample.csv": "python/clearway/papers/harmony/counterexample.csv" };
