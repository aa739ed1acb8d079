//! Five coding-agent CLIs behind one interface.
