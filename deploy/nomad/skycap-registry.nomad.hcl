# SPDX-License-Identifier: Apache-2.0
# The registry: which nodes there are, and where they are reached. One is enough: while it is away, the nodes go on with
# what they know (docs/cluster.md). It runs on the client with `meta { skycap_registry = "true" }`, which keeps its data.
#
#     nomad job run skycap-registry.nomad.hcl
job "skycap-registry" {
  datacenters = ["*"]
  type        = "service"

  constraint {
    attribute = "${meta.skycap_registry}"
    value     = "true"
  }

  group "registry" {
    network {
      port "grpc" { static = 8999 }
      port "http" { static = 9809 }
    }

    task "registry" {
      driver = "docker"
      user   = "65532:65532" # it needs no rights

      config {
        image        = "registry.example.com/skycap:0.1.0"
        network_mode = "host"
        args = [
          "serve",
          "--roles", "registry",
          "--endpoint", "unix:///local/registry.sock",
          "--data", "/var/lib/skycap-registry",
          "--listen", "${NOMAD_ADDR_grpc}",
          "--http", "${NOMAD_ADDR_http}",
          "--tls-ca", "/etc/skycap-registry/pki/ca.crt",
          "--tls-cert", "/etc/skycap-registry/pki/component.registry.crt",
          "--tls-key", "/etc/skycap-registry/pki/component.registry.key",
          "--log-format", "json",
        ]
        mount {
          type   = "bind"
          source = "/var/lib/skycap-registry"
          target = "/var/lib/skycap-registry"
        }
        mount {
          type     = "bind"
          source   = "/etc/skycap-registry/pki"
          target   = "/etc/skycap-registry/pki"
          readonly = true
        }
      }

      kill_timeout = "45s"

      resources {
        cpu        = 50
        memory     = 32
        memory_max = 256
      }
    }
  }
}
