//! The delivery of callbacks, against real receivers.
