# SPDX-License-Identifier: Apache-2.0
# Skycap on every client of Nomad, as controller and node plugin in one: nomad job run skycap.nomad.hcl
#
# The client allows privileged containers: plugin "docker" { config { allow_privileged = true } }.
# Without a registry each client is alone, and its volumes stay on it. For a cluster, add the flags of
# docs/cluster.md to args, with a certificate for each node.
job "skycap" {
  datacenters = ["*"]
  type        = "system"

  group "skycap" {
    task "skycap" {
      driver = "docker"

      config {
        image      = "registry.example.com/skycap:0.1.0"
        privileged = true # it mounts, for the whole host
        args = [
          "serve",
          "--endpoint", "unix:///csi/csi.sock",
          "--data", "/var/lib/skycap",
          "--node-id", "${node.unique.name}",
          "--log-format", "json",
        ]
        # The pool is mounted in it, and stays mounted while the task is replaced.
        mount {
          type   = "bind"
          source = "/var/lib/skycap"
          target = "/var/lib/skycap"
          bind_options { propagation = "rshared" }
        }
        # Loop devices that are made later appear only in the host's /dev.
        mount {
          type   = "bind"
          source = "/dev"
          target = "/dev"
        }
      }

      csi_plugin {
        id        = "skycap"
        type      = "monolith"
        mount_dir = "/csi"
      }

      # Calls in progress have 30 s.
      kill_timeout = "45s"

      resources {
        cpu        = 100
        memory     = 64
        memory_max = 512
      }
    }
  }
}
