//! Vector oblivious linear evaluation (VOLE): what it is. The files beside this one say how.
