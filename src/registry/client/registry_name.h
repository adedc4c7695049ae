/* SPDX-License-Identifier: Apache-2.0 */
/* The name that the certificate of a registry must have. */
#ifndef REGISTRY_CLIENT_REGISTRY_NAME_H
#define REGISTRY_CLIENT_REGISTRY_NAME_H

#define REGISTRY_NAME "component.registry"

#endif
