//! The work from which `hack/profile` learns what code of a server is hot: reviews of other sizes
//! than the one that is measured.

use std::time::Duration;

use super::child::Cores;
use super::load::Pace;
use super::{FLOOR, OURS, given, start};

const SIZES: [usize; 3] = [4 * 1024, 14 * 1024, 48 * 1024];
const EACH: Duration = Duration::from_secs(3);

/// Loads both servers with each of the sizes, and lets them end so that they can write what they counted.
pub fn train(cores: &Cores) {
    for bytes in SIZES {
        let (folder, size) = given(bytes);
        for name in [OURS, FLOOR] {
            let mut server = start(name, bytes, &folder, cores);
            let measured = server.measure(&folder, cores, Pace::Flat, EACH);
            println!("training: {size} bytes, {name}: {} requests", measured.requests);
            server.child.end();
        }
    }
}
