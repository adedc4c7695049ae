// SPDX-License-Identifier: Apache-2.0
// The interop cases, as gRPC's published test descriptions ask for them, made with grpc-js. Each is an
// async function of a client that throws when the server's behaviour is not the described one.
'use strict';

const assert = require('node:assert/strict');
const { Metadata, makeGenericClientConstructor, status } = require('@grpc/grpc-js');

const largeRequest = 271828;
const largeResponse = 314159;
const requestSizes = [27182, 8, 1828, 45904];
const responseSizes = [31415, 9, 2653, 58979];

const payload = (size) => ({ body: Buffer.alloc(size) });
const responses = (...sizes) => sizes.map((size) => ({ size }));

// A unary call's answer with the metadata round it; an error answer is thrown.
function unary(client, method, request, metadata = new Metadata()) {
    return new Promise((resolve, reject) => {
        let header;
        let response;
        const call = client[method](request, metadata, (error, value) => {
            if (error) reject(error);
            response = value;
        });
        call.on('metadata', (value) => { header = value; });
        call.on('status', (end) => resolve({ response, header, trailer: end.metadata }));
    });
}

// Reads a stream to its end: the header, all messages, and the status it ended with.
function readAll(call) {
    const messages = [];
    let header;
    call.on('metadata', (value) => { header = value; });
    call.on('data', (message) => messages.push(message));
    call.on('error', () => {}); // the status event says the same
    return new Promise((resolve) => {
        call.on('status', (end) => resolve({ header, messages, end }));
    });
}

const bodySizes = (messages) => messages.map((message) => message.payload.body.length);

async function fails(code, promise) {
    await assert.rejects(promise, (error) => {
        assert.equal(error.code, code, error.message);
        return true;
    });
}

async function emptyUnary(client) {
    const { response } = await unary(client, 'EmptyCall', {});
    assert.deepEqual({ ...response }, {});
}

async function largeUnary(client) {
    const { response } = await unary(client, 'UnaryCall',
        { response_size: largeResponse, payload: payload(largeRequest) });
    assert.equal(response.payload.body.length, largeResponse);
}

async function clientStreaming(client) {
    const answer = new Promise((resolve, reject) => {
        const call = client.StreamingInputCall((error, value) => (error ? reject(error) : resolve(value)));
        for (const size of requestSizes) call.write({ payload: payload(size) });
        call.end();
    });
    assert.equal((await answer).aggregated_payload_size, 74922);
}

async function serverStreaming(client) {
    const call = client.StreamingOutputCall({ response_parameters: responses(...responseSizes) });
    const { messages, end } = await readAll(call);
    assert.equal(end.code, status.OK, end.details);
    assert.deepEqual(bodySizes(messages), responseSizes);
}

async function pingPong(client) {
    const call = client.FullDuplexCall();
    const reading = readAll(call);
    for (const [i, size] of requestSizes.entries()) {
        const pong = new Promise((resolve) => { call.once('data', resolve); });
        call.write({ response_parameters: responses(responseSizes[i]), payload: payload(size) });
        await Promise.race([pong, reading]);
    }
    call.end();
    const { messages, end } = await reading;
    assert.equal(end.code, status.OK, end.details);
    assert.deepEqual(bodySizes(messages), responseSizes);
}

async function emptyStream(client) {
    const call = client.FullDuplexCall();
    call.end();
    const { messages, end } = await readAll(call);
    assert.equal(end.code, status.OK, end.details);
    assert.equal(messages.length, 0);
}

async function timeoutOnSleepingServer(client) {
    const call = client.FullDuplexCall({ deadline: Date.now() + 50 });
    call.write({ payload: payload(27182) }); // asks for no answer, and the request does not end
    const { messages, end } = await readAll(call);
    assert.equal(end.code, status.DEADLINE_EXCEEDED, end.details);
    assert.equal(messages.length, 0);
}

async function cancelAfterBegin(client) {
    let call;
    const answer = new Promise((resolve, reject) => {
        call = client.StreamingInputCall((error, value) => (error ? reject(error) : resolve(value)));
    });
    setImmediate(() => call.cancel());
    await fails(status.CANCELLED, answer);
}

async function cancelAfterFirstResponse(client) {
    const call = client.FullDuplexCall();
    call.once('data', () => call.cancel());
    call.write({ response_parameters: responses(31415), payload: payload(27182) });
    const { messages, end } = await readAll(call);
    assert.equal(end.code, status.CANCELLED, end.details);
    assert.deepEqual(bodySizes(messages), [31415]);
}

async function statusCodeAndMessage(client) {
    const wanted = { code: status.UNKNOWN, message: 'test status message' };
    await failsWith(wanted, unary(client, 'UnaryCall', { response_status: wanted }));
    const call = client.FullDuplexCall();
    call.write({ response_status: wanted });
    call.end();
    const { end } = await readAll(call);
    assert.equal(end.code, wanted.code);
    assert.equal(end.details, wanted.message);
}

async function specialStatusMessage(client) {
    const message = '\t\ntest with whitespace\r\nand Unicode BMP ☺ and non-BMP 😈\t\n';
    const wanted = { code: status.UNKNOWN, message };
    await failsWith(wanted, unary(client, 'UnaryCall', { response_status: wanted }));
}

async function failsWith(wanted, promise) {
    await assert.rejects(promise, (error) => {
        assert.equal(error.code, wanted.code);
        assert.equal(error.details, wanted.message);
        return true;
    });
}

const initialKey = 'x-grpc-test-echo-initial';
const trailingKey = 'x-grpc-test-echo-trailing-bin';
const trailingValue = Buffer.from('0a0b0a0b0a0b', 'hex');

async function customMetadata(client) {
    const sent = new Metadata();
    sent.set(initialKey, 'test_initial_metadata_value');
    sent.set(trailingKey, trailingValue);
    const { header, trailer } = await unary(client, 'UnaryCall',
        { response_size: 1, payload: payload(1) }, sent);
    checkEcho(header, trailer);

    const call = client.FullDuplexCall(sent);
    call.write({ response_parameters: responses(1), payload: payload(1) });
    call.end();
    const stream = await readAll(call);
    assert.equal(stream.end.code, status.OK, stream.end.details);
    checkEcho(stream.header, stream.end.metadata);
}

function checkEcho(header, trailer) {
    assert.deepEqual(header.get(initialKey), ['test_initial_metadata_value']);
    assert.deepEqual(trailer.get(trailingKey), [trailingValue]);
}

async function unimplementedMethod(client) {
    await fails(status.UNIMPLEMENTED, unary(client, 'UnimplementedCall', {}));
}

// The same channel, but a service that no server has.
async function unimplementedService(client, services) {
    const Other = makeGenericClientConstructor(services.UnimplementedService.service);
    const other = new Other('', null, { channelOverride: client.getChannel() });
    await fails(status.UNIMPLEMENTED, unary(other, 'UnimplementedCall', {}));
}

module.exports = {
    empty_unary: emptyUnary,
    large_unary: largeUnary,
    client_streaming: clientStreaming,
    server_streaming: serverStreaming,
    ping_pong: pingPong,
    empty_stream: emptyStream,
    timeout_on_sleeping_server: timeoutOnSleepingServer,
    cancel_after_begin: cancelAfterBegin,
    cancel_after_first_response: cancelAfterFirstResponse,
    status_code_and_message: statusCodeAndMessage,
    special_status_message: specialStatusMessage,
    custom_metadata: customMetadata,
    unimplemented_method: unimplementedMethod,
    unimplemented_service: unimplementedService,
};
