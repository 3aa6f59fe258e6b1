//! URL APPLICATION: the pyroscope crate as in its manual, on a program that burns processor time.
use pyroscope::backend::{pprof_backend, BackendConfig, PprofConfig};
use pyroscope::pyroscope::PyroscopeAgentBuilder;
use std::time::{Duration, Instant};

#[inline(never)]
fn burn_processor(until: Instant) -> u64 {
    let mut n: u64 = 1;
    while Instant::now() < until {
        for i in 0..1_000_000u64 {
            n = std::hint::black_box(n.wrapping_mul(6364136223846793005).wrapping_add(i));
        }
    }
    n
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let backend = pprof_backend(PprofConfig::default(), BackendConfig::default());
    let mut builder = PyroscopeAgentBuilder::new(&arguments[1], &arguments[2], 100, "pyroscope-rs", "2.1.5", backend)
        .tags(vec![("region", "eu")])
        .upload_interval(Duration::from_secs(2));
    if let Ok(token) = std::env::var("PYROSCOPE_AUTH_TOKEN") {
        builder = builder.basic_auth("sdk", token); // the password of any user
    }
    let agent = builder.build()?.start()?;
    println!("{}", burn_processor(Instant::now() + Duration::from_secs(6)));
    agent.stop()?.shutdown();
    Ok(())
}
