# SPDX-License-Identifier: Apache-2.0
"""nginx as a peer: one worker, no log, connections that are kept."""

import os

CONF = """
{user}
daemon off;
worker_processes 1;
pid {directory}/nginx.pid;
error_log {directory}/nginx-error.log;
events {{ worker_connections 4096; }}
http {{
    access_log off;
    client_body_temp_path {directory}/body;
    proxy_temp_path {directory}/proxy;
    fastcgi_temp_path {directory}/fastcgi;
    uwsgi_temp_path {directory}/uwsgi;
    scgi_temp_path {directory}/scgi;
    keepalive_requests 1000000000;
    upstream behind {{
        server {upstream};
        keepalive 256;
        keepalive_requests 1000000000;
    }}
    {server}
}}
"""


def command(directory, upstream, server):
    """Writes the configuration into the directory and gives the command that serves it. `server` is text that may name
    the upstream `behind`."""
    conf = directory / "nginx.conf"
    conf.write_text(CONF.format(directory=directory, upstream=upstream, server=server,
                                user="user root;" if os.geteuid() == 0 else ""))
    return ["nginx", "-p", directory, "-e", directory / "nginx-error.log", "-c", conf]
