"""Commands for the daemon and its workers: start, stop, status, logs and the systemd unit."""
