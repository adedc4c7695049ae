# SPDX-License-Identifier: Apache-2.0
# Skycap on every client of Nomad, as controller and node plugin in one. The clients form a cluster, because Nomad
# sends calls of the controller to any of them. docs/deploy.md has the steps: certificates and the registry come first.
#
#     nomad job run -var registry=10.0.0.1:8999 skycap.nomad.hcl
#
# The plugin "docker" of each client has allow_privileged = true and volumes { enabled = true }.
variable "registry" {
  type        = string
  description = "HOST:PORT of the registry: skycap-registry.nomad.hcl"
}

job "skycap" {
  datacenters = ["*"]
  type        = "system"

  group "skycap" {
    # Both are ports of the client: nodes call each other at the first, Prometheus reads the second.
    network {
      port "grpc" { static = 8443 }
      port "http" { static = 9808 }
    }

    task "skycap" {
      driver = "docker"

      config {
        image        = "registry.example.com/skycap:0.1.0"
        network_mode = "host"
        privileged   = true # it mounts, for the whole host
        args = [
          "serve",
          "--endpoint", "unix:///csi/csi.sock",
          "--data", "/var/lib/skycap",
          "--node-id", "${node.unique.name}",
          "--registry", "${var.registry}",
          "--listen", "${NOMAD_ADDR_grpc}",
          "--http", "${NOMAD_ADDR_http}",
          "--tls-ca", "/etc/skycap/pki/ca.crt",
          "--tls-cert", "/etc/skycap/pki/node.${node.unique.name}.crt",
          "--tls-key", "/etc/skycap/pki/node.${node.unique.name}.key",
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
        # Each client has its own key only.
        mount {
          type     = "bind"
          source   = "/etc/skycap/pki"
          target   = "/etc/skycap/pki"
          readonly = true
        }
        # What `btrfs scrub` on the host notes. Docker makes the directory if it is not there.
        volumes = ["/var/lib/btrfs:/var/lib/btrfs:ro"]
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
