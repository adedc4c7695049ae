// SPDX-License-Identifier: Apache-2.0
// What the grpc-js peers share: proto files, the --tls-* flags, and gRPC credentials made of them.
'use strict';

const fs = require('node:fs');
const path = require('node:path');
const grpc = require('@grpc/grpc-js');
const loader = require('@grpc/proto-loader');

const root = path.join(__dirname, '..', '..', '..');

function loadProto(file) {
    return grpc.loadPackageDefinition(loader.loadSync(path.join(root, file), { keepCase: true }));
}

const tlsFlags = {
    'tls-ca': { type: 'string' },
    'tls-cert': { type: 'string' },
    'tls-key': { type: 'string' },
};

// The three files of mutual TLS, or null for plaintext.
function readTlsFiles(flags) {
    const names = Object.keys(tlsFlags).map((flag) => flags[flag]);
    if (names.every((name) => name === undefined)) return null;
    if (names.some((name) => name === undefined)) {
        throw new Error('--tls-ca, --tls-cert and --tls-key belong together');
    }
    const [ca, cert, key] = names.map((name) => fs.readFileSync(name));
    return { ca, cert, key };
}

function clientCredentials(flags) {
    const files = readTlsFiles(flags);
    return files ? grpc.credentials.createSsl(files.ca, files.key, files.cert)
        : grpc.credentials.createInsecure();
}

function serverCredentials(flags) {
    const files = readTlsFiles(flags);
    return files ? grpc.ServerCredentials.createSsl(files.ca,
        [{ private_key: files.key, cert_chain: files.cert }], true)
        : grpc.ServerCredentials.createInsecure();
}

module.exports = { loadProto, tlsFlags, clientCredentials, serverCredentials };
