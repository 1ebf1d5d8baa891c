//! Resources that fuel does not count, and that are bounded before a module is compiled.
//!
//! An instruction is a unit of fuel, however many bytes it moves: a loop around one that fills all memory would run for
//! half a minute on a call's fuel. And a few bytes of a file can declare many locals, each of which costs the compiler.

use wasmparser::{Operator, Parser, Payload};

/// Most bytes that one instruction may copy or fill.
const BULK_BYTES_MAX: i32 = 4_096;

/// Most locals of all functions together.
const LOCALS_MAX: u64 = 100_000;

/// Refuses a module that goes beyond what is bounded here. The compiler reports malformed modules.
pub(super) fn check(bytes: &[u8]) -> Result<(), String> {
    let mut locals = 0;
    for payload in Parser::new(0).parse_all(bytes) {
        let Ok(payload) = payload else { return Ok(()) };
        let Payload::CodeSectionEntry(body) = payload else { continue };
        let Ok(declared) = body.get_locals_reader() else { return Ok(()) };
        locals += declared.into_iter().flatten().map(|(count, _)| u64::from(count)).sum::<u64>();
        if locals > LOCALS_MAX {
            return Err(format!("declares more than {LOCALS_MAX} local variables"));
        }
        let Ok(operators) = body.get_operators_reader() else { return Ok(()) };
        let mut before = None;
        for operator in operators {
            let Ok(operator) = operator else { return Ok(()) };
            if let Some(name) = bulk(&operator)
                && !matches!(before, Some(Operator::I32Const { value: 0..=BULK_BYTES_MAX }))
            {
                return Err(format!(
                    "has {name} of a length that is not a constant of at most {BULK_BYTES_MAX}, which fuel would not \
                     count; use a loop, or compile without bulk memory (clang: -mno-bulk-memory)"
                ));
            }
            before = Some(operator);
        }
    }
    Ok(())
}

/// The name of an instruction that does as much as its last operand says.
fn bulk(operator: &Operator<'_>) -> Option<&'static str> {
    match operator {
        Operator::MemoryCopy { .. } => Some("memory.copy"),
        Operator::MemoryFill { .. } => Some("memory.fill"),
        Operator::MemoryInit { .. } => Some("memory.init"),
        Operator::TableCopy { .. } => Some("table.copy"),
        Operator::TableFill { .. } => Some("table.fill"),
        Operator::TableInit { .. } => Some("table.init"),
        Operator::TableGrow { .. } => Some("table.grow"),
        _ => None,
    }
}
