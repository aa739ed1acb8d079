//! The HTTP service as other programs meet it: over real connections to the
//! gateway as a process.

mod fuzz;
mod guide;
mod hostile;
mod killed;
mod served;
