// SPDX-License-Identifier: Apache-2.0
// Serves csi.v1.Identity with constant answers: the grpc-js side of the benchmark.
'use strict';

const fs = require('node:fs');
const { parseArgs } = require('node:util');
const grpc = require('@grpc/grpc-js');
const { loadProto, tlsFlags, serverCredentials } = require('./peer.js');

const drainMs = 2000;

const pluginInfo = {
    name: 'csi.skycap.dev',
    vendor_version: '0.1.0',
    manifest: { commit: '0123456789ab' },
};
const capabilities = {
    capabilities: [
        { service: { type: 'CONTROLLER_SERVICE' } },
        { service: { type: 'VOLUME_ACCESSIBILITY_CONSTRAINTS' } },
    ],
};
const probe = { ready: { value: true } };

const identity = {
    GetPluginInfo: (call, answer) => answer(null, pluginInfo),
    GetPluginCapabilities: (call, answer) => answer(null, capabilities),
    Probe: (call, answer) => answer(null, probe),
};

// A socket file of an earlier run would make the bind fail.
function removeSocket(path) {
    if (fs.statSync(path, { throwIfNoEntry: false })?.isSocket()) fs.unlinkSync(path);
}

function listen(server, address, credentials) {
    const unixPath = address.startsWith('unix:') ? address.slice('unix:'.length) : null;
    if (unixPath) removeSocket(unixPath);
    return new Promise((resolve, reject) => {
        server.bindAsync(address, credentials, (error, port) => {
            if (error) reject(error);
            else resolve(unixPath ? address : address.replace(/:\d+$/, `:${port}`));
        });
    });
}

function drain(server) {
    server.tryShutdown(() => process.exit(0));
    setTimeout(() => server.forceShutdown(), drainMs);
}

async function main() {
    const { values: flags } = parseArgs({
        options: { ...tlsFlags, listen: { type: 'string', default: '127.0.0.1:0' } },
    });
    const server = new grpc.Server();
    server.addService(loadProto('proto/csi.proto').csi.v1.Identity.service, identity);
    const address = await listen(server, flags.listen, serverCredentials(flags));
    process.on('SIGTERM', () => drain(server));
    process.on('SIGINT', () => drain(server));
    console.log(`listening on ${address}`);
}

main().catch((error) => {
    console.error(error.message);
    process.exitCode = 2;
});
