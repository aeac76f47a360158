"""Health as documents: the doctor, the operator log, retention."""
