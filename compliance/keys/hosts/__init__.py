"""Keys behind key hosts: processes that alone open the PKCS#11 module, for all others on the machine."""
