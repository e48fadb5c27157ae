//! `veilset calibrate`: measures the speeds of this machine, and stores them for the choice of protocols.

use crate::args::CalibrateArgs;
use crate::party::printer;
use crate::print;
use serde_json::{Map, Value};
use veilset::error::Result;
use veilset::speed;
use veilset::work::Primitive;
use veilset_app::speeds::file;

/// Measures, stores and prints the speeds.
pub fn run(a: &CalibrateArgs) -> Result<()> {
    let path = file(a.speeds.as_deref())?;
    speed::check_place(&path)?;
    let say = printer(a.quiet || a.json);
    say(&format!("measuring {} for a few seconds; nothing else should run on it", speed::this_machine()));
    let speeds = speed::measure(1, &mut |_| ())?;
    speed::save(&path, &speeds)?;
    match a.json {
        true => {
            let nanoseconds =
                |p| (Primitive::name(p).to_string(), (speeds.picoseconds(p) as f64 / 1000.0).into());
            print(Value::from(Primitive::ALL.map(nanoseconds).into_iter().collect::<Map<_, _>>()))?;
        }
        false => Primitive::ALL.into_iter().try_for_each(|primitive| {
            print(format!("{:35} {}", primitive.name(), time(speeds.picoseconds(primitive))))
        })?,
    }
    say(&format!("kept in {}", path.display()));
    Ok(())
}

/// Formats a time in a suitable unit.
fn time(picoseconds: u64) -> String {
    let nanoseconds = picoseconds as f64 / 1000.0;
    match nanoseconds {
        0.0..1e3 => format!("{nanoseconds:10.2} ns"),
        1e3..1e6 => format!("{:10.2} us", nanoseconds / 1e3),
        _ => format!("{:10.2} ms", nanoseconds / 1e6),
    }
}
