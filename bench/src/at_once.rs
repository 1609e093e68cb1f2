//! Two measurements at the same time: whatever slows the machine meanwhile slows both.

use anyhow::anyhow;
use tokio::runtime::Handle;

/// `measure` of 0 and of 1, each on a thread of its own: what one waits for while it sets up does not hold the other back.
pub fn both<T, M>(measure: impl Fn(usize) -> M + Sync) -> anyhow::Result<[T; 2]>
where
    T: Send,
    M: Future<Output = anyhow::Result<T>>,
{
    let (runtime, measure) = (&Handle::current(), &measure);
    tokio::task::block_in_place(|| {
        std::thread::scope(|scope| {
            let both = [0, 1].map(|side| scope.spawn(move || runtime.block_on(measure(side))));
            let [first, second] = both.map(|side| {
                let measured = side.join();
                measured.unwrap_or_else(|_| Err(anyhow!("the measurement has panicked")))
            });
            Ok([first?, second?])
        })
    })
}
