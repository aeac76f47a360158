SELECT number, name, checksum FROM migrations ORDER BY number;
