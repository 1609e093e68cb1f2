//! What processes have used: processor time and memory, as the kernel counts them.

use anyhow::Context;

/// Linux tells processor time in hundredths of a second, whatever its own clock ticks.
pub const TICKS_A_SECOND: f64 = 100.0;
const PAGE: u64 = 4096;

/// What a process has used so far.
#[derive(Debug, Clone, Copy)]
pub struct Usage {
    /// Seconds of processor, in the program and in the kernel.
    pub cpu: f64,
    /// Memory that is resident now.
    pub bytes: u64,
}

impl Usage {
    pub fn of(process: u32) -> anyhow::Result<Self> {
        let pages = read(process, "statm")?;
        let pages: u64 = pages
            .split(' ')
            .nth(1)
            .context("the second figure is what is resident")?
            .parse()?;
        Ok(Self {
            cpu: cpu_fields(&read(process, "stat")?)?[..2].iter().sum(),
            bytes: pages * PAGE,
        })
    }

    pub fn of_this_process() -> anyhow::Result<Self> {
        Self::of(std::process::id())
    }
}

/// Seconds of processor of all children of this process that have ended, and of theirs.
pub fn cpu_of_ended_children() -> anyhow::Result<f64> {
    let stat = read(std::process::id(), "stat")?;
    Ok(cpu_fields(&stat)?[2..].iter().sum())
}

fn read(process: u32, name: &str) -> anyhow::Result<String> {
    let file = format!("/proc/{process}/{name}");
    std::fs::read_to_string(file).context("the process has ended")
}

/// The 14th to 17th field: seconds in the program and in the kernel, then the same of children that have ended.
fn cpu_fields(stat: &str) -> anyhow::Result<[f64; 4]> {
    let (_, fields) = stat.rsplit_once(')').context("a name stands in brackets")?;
    let mut ticks = fields.split_ascii_whitespace().skip(11);
    let mut seconds = [0.0; 4];
    for field in &mut seconds {
        let ticks: f64 = ticks.next().context("the line is cut off")?.parse()?;
        *field = ticks / TICKS_A_SECOND;
    }
    Ok(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_time_is_read_whatever_the_name_of_the_process_holds() {
        let stat = |name| format!("7 ({name}) S 5 1 1 0 -1 0 0 0 0 0 300 50 40 7 20 0");
        for name in ["clarion", "a) (b"] {
            let seconds = cpu_fields(&stat(name)).unwrap();
            assert_eq!(format!("{seconds:?}"), "[3.0, 0.5, 0.4, 0.07]");
        }
        assert!(cpu_fields("7 (cut off) S 5").is_err());
        assert!(Usage::of_this_process().unwrap().bytes > 0);
    }
}
