//! The engine against baresip, a softphone that nobody here wrote: sound as it was heard, TLS, keys both ways, hold.

mod calls;
mod softphone;

use softphone::Softphone;
