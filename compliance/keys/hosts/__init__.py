"""Key hosts: processes of their own that alone open the PKCS#11 module, and how the others talk to them."""
