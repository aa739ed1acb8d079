//! Projects, made and changed beside a gateway.
