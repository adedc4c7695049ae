// SPDX-License-Identifier: Apache-2.0
// Runs interop cases with grpc-js against a server and prints one line for each: "ok CASE" or
// "FAILED CASE: why". All cases share one connection.
'use strict';

const { parseArgs } = require('node:util');
const cases = require('./cases.js');
const { loadProto, tlsFlags, clientCredentials } = require('./peer.js');

const connectMs = 5000;
const caseMs = 20000;

function usage() {
    console.error('usage: interop-client.js [--tls-ca FILE --tls-cert FILE --tls-key FILE --tls-name NAME]'
        + ' ADDR CASE...\n\ncases:', Object.keys(cases).join(' '));
    process.exit(2);
}

function readFlags() {
    try {
        const { values, positionals } = parseArgs({
            options: { ...tlsFlags, 'tls-name': { type: 'string' } },
            allowPositionals: true,
        });
        const [address, ...names] = positionals;
        return names.length > 0 ? { flags: values, address, names } : usage();
    } catch (error) {
        console.error(error.message);
        return usage();
    }
}

function connect(TestService, address, flags) {
    const name = flags['tls-name'];
    return new TestService(address, clientCredentials(flags),
        name ? { 'grpc.ssl_target_name_override': name } : {});
}

async function runCase(client, services, name) {
    if (!cases[name]) throw new Error('no such case');
    await ready(client);
    let timer;
    const tooLate = new Promise((_, reject) => {
        timer = setTimeout(() => reject(new Error(`not finished after ${caseMs} ms`)), caseMs);
    });
    try {
        await Promise.race([cases[name](client, services), tooLate]);
    } finally {
        clearTimeout(timer);
    }
}

function ready(client) {
    return new Promise((resolve, reject) => {
        client.waitForReady(Date.now() + connectMs, (error) => (error ? reject(error) : resolve()));
    });
}

async function main() {
    const { flags, address, names } = readFlags();
    const services = loadProto('tests/proto/interop.proto').grpc.testing;
    const client = connect(services.TestService, address, flags);
    let failures = 0;
    for (const name of names) {
        try {
            await runCase(client, services, name);
            console.log(`ok ${name}`);
        } catch (error) {
            console.log(`FAILED ${name}: ${error.message.split(/\s+/).join(' ').slice(0, 400)}`);
            failures += 1;
        }
    }
    client.close();
    process.exitCode = failures > 0 ? 1 : 0;
}

main().catch((error) => {
    console.error(error.message);
    process.exitCode = 2;
});
