"""Certificates made by the openssl command, below a temporary directory."""

import os
import subprocess


class Authority:
    """A certificate authority: <name>.pem, <name>.key."""

    def __init__(self, directory, name):
        self.directory, self.name = directory, name
        self.file = self.path(name + ".pem")
        self.run("req", "-x509", *self.new_key(name), "-days", "30", "-out", self.file, "-subj", "/CN=" + name)

    def path(self, name):
        return os.path.join(self.directory, name)

    def run(self, *arguments):
        done = subprocess.run(["openssl", *arguments], capture_output=True, text=True, cwd=self.directory)
        assert done.returncode == 0, done.stderr

    def new_key(self, name, kind="ec"):
        how = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"] if kind == "ec" else ["-newkey", "rsa:2048"]
        return [*how, "-nodes", "-keyout", self.path(name + ".key")]

    def sign(self, name, subject, names="DNS:localhost,IP:127.0.0.1", days=20, kind="ec"):
        """(certificate with its chain, key), two paths."""
        self.run("req", *self.new_key(name, kind), "-out", self.path(name + ".csr"), "-subj", subject)
        with open(self.path(name + ".ext"), "w") as ext:
            ext.write("subjectAltName=%s\n" % names)
        self.run("x509", "-req", "-in", self.path(name + ".csr"), "-CA", self.file, "-CAkey", self.path(self.name + ".key"),
                 "-CAcreateserial", "-days", str(days), "-extfile", self.path(name + ".ext"), "-out", self.path(name + ".pem"))
        os.chmod(self.path(name + ".key"), 0o644)  # hearthd gives up root before it reads the key
        return self.path(name + ".pem"), self.path(name + ".key")
