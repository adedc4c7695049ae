# SPDX-License-Identifier: Apache-2.0
"""Gives objects to an API server: apply.py SERVER TOKEN dry|real OBJECTS

OBJECTS has an object on each line, as manifest-objects prints them. Each is applied by the server (server-side apply), which checks every field. Prints `ok KIND NAME` or
`FAILED KIND NAME: WHY`; the exit code is 1 if any failed."""

import json
import ssl
import sys
import urllib.error
import urllib.request


class Server:
    def __init__(self, address, token):
        self.address, self.token = address, token
        self.kinds = {}

    def call(self, method, path, body=None, content="application/json"):
        request = urllib.request.Request(self.address + path, method=method, data=body,
                                         headers={"Authorization": f"Bearer {self.token}", "Content-Type": content})
        # The server has made a certificate for itself, on loopback.
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        with urllib.request.urlopen(request, context=context, timeout=60) as reply:
            return json.load(reply)

    def root(self, version):
        return f"/apis/{version}" if "/" in version else f"/api/{version}"

    def resource(self, version, kind):
        """Its name in paths, and whether it is in a namespace."""
        if version not in self.kinds:
            found = self.call("GET", self.root(version))["resources"]
            self.kinds[version] = {each["kind"]: each for each in found if "/" not in each["name"]}
        each = self.kinds[version][kind]
        return each["name"], each["namespaced"]

    def apply(self, thing, is_dry):
        version, kind, meta = thing["apiVersion"], thing["kind"], thing["metadata"]
        name, is_namespaced = self.resource(version, kind)
        place = f"/namespaces/{meta.get('namespace', 'default')}" if is_namespaced else ""
        query = "?fieldManager=skycap-test&fieldValidation=Strict" + ("&dryRun=All" if is_dry else "")
        self.call("PATCH", f"{self.root(version)}{place}/{name}/{meta['name']}{query}", json.dumps(thing).encode(),
                  "application/apply-patch+yaml")


def reason(error):
    try:
        return json.load(error)["message"]
    except (ValueError, KeyError):
        return str(error)


def main():
    address, token, mode, path = sys.argv[1:]
    server, has_failed = Server(address, token), False
    for line in open(path):
        thing = json.loads(line)["object"]
        name = f"{thing['kind']} {thing['metadata']['name']}"
        try:
            server.apply(thing, mode == "dry")
            print(f"ok {name}")
        except urllib.error.HTTPError as error:
            print(f"FAILED {name}: {reason(error)}")
            has_failed = True
        except KeyError as error:
            print(f"FAILED {name}: the server has no kind {error}")
            has_failed = True
    sys.exit(has_failed)


main()
