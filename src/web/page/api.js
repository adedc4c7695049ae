// SPDX-License-Identifier: Apache-2.0
// Talks with the server: calls, and the stream of events. The token lives as long as the tab.

const TOKEN = 'skycap-token';
const SILENCE_MS = 12000; // the server pings every 5 s
const FIRST_DELAY_MS = 500;
const LONGEST_DELAY_MS = 10000;
const ANSWER_MS = 45000; // more than the server takes; without an end, a lost packet would wait for ever

export class ApiError extends Error {
    constructor(status, code, message) {
        super(message);
        this.status = status;
        this.code = code;
    }
}

export const token = {
    get: () => sessionStorage.getItem(TOKEN) ?? '',
    set: (value) =>
        value ? sessionStorage.setItem(TOKEN, value) : sessionStorage.removeItem(TOKEN),
};

export function headersFor(secret, more) {
    return secret ? { ...more, Authorization: `Bearer ${secret}` } : { ...more };
}

// Some answers are a line of text: "503 Service Unavailable: too many requests at a time".
export async function errorOf(response) {
    const text = await response.text().catch(() => '');
    const error = parse(text)?.error;
    const line = text.match(/^\d+ [^:\n]*: (.*)/)?.[1];
    return new ApiError(
        response.status,
        error?.code ?? '',
        error?.message ?? line ?? `the server answered ${response.status}`,
    );
}

function parse(text) {
    try {
        return JSON.parse(text);
    } catch {
        return null;
    }
}

// As fetch, but it ends.
export async function fetchSoon(path, options) {
    const late = AbortSignal.timeout(ANSWER_MS);
    const signal = options.signal ? AbortSignal.any([options.signal, late]) : late;
    try {
        return await fetch(path, { ...options, signal });
    } catch (reason) {
        throw inWords(reason);
    }
}

// call("nodes") reads, call("moves", {...}) changes.
export async function call(path, body, secret = token.get()) {
    const options = { cache: 'no-store', headers: headersFor(secret) };
    if (body) {
        options.method = 'POST';
        options.headers['Content-Type'] = 'application/json';
        options.body = JSON.stringify(body);
    }
    const response = await fetchSoon(`/api/v1/${path}`, options);
    if (!response.ok) throw await errorOf(response);
    return response.json();
}

// Follows the events for ever: onEvent(name, data), onState("live", "lost" or "paused", error or null, seconds until it tries again).
export function follow(onEvent, onState, isPausedAtFirst) {
    let controller = null;
    let wake = null;
    let isPaused = isPausedAtFirst;

    function sleep(ms) {
        return new Promise((resolve) => {
            wake = resolve;
            if (ms) setTimeout(resolve, ms);
        });
    }

    async function once() {
        controller = new AbortController();
        let timer = null;
        const arm = () => {
            clearTimeout(timer);
            timer = setTimeout(
                () => controller.abort(new Error('the server has been silent for 12 s')),
                SILENCE_MS,
            );
        };
        try {
            arm();
            const response = await fetch('/api/v1/events', {
                cache: 'no-store',
                headers: headersFor(token.get(), { Accept: 'text/event-stream' }),
                signal: controller.signal,
            });
            if (!response.ok) throw await errorOf(response);
            await readEvents(response.body, arm, onEvent, () => onState('live', null));
        } finally {
            clearTimeout(timer);
        }
        throw new Error('the server ended the stream');
    }

    async function forever() {
        let delay = FIRST_DELAY_MS;
        for (;;) {
            if (isPaused) {
                onState('paused', null);
                await sleep();
                continue;
            }
            const started = Date.now();
            const error = await once().catch(inWords);
            if (Date.now() - started > SILENCE_MS) delay = FIRST_DELAY_MS;
            if (error !== 'again') {
                onState('lost', error, delay / 1000);
                await sleep(delay);
            }
            delay = error === 'again' ? FIRST_DELAY_MS : Math.min(delay * 2, LONGEST_DELAY_MS);
        }
    }

    // Connects again at once, with the token that is there now.
    function again() {
        wake?.();
        controller?.abort('again');
    }

    forever();
    return {
        again,
        // Ends the stream until it is wanted again: a browser has few connections for all tabs, and the server few streams.
        pause(isWanted) {
            if (isPaused === isWanted) return;
            isPaused = isWanted;
            again();
        },
    };
}

// What fetch throws when it reaches nobody differs from browser to browser.
function inWords(reason) {
    if (reason?.name === 'TimeoutError') return new Error('The server does not answer');
    return reason instanceof TypeError ? new Error('The server cannot be reached') : reason;
}

async function readEvents(body, onBytes, onEvent, onFirst) {
    const reader = body.pipeThrough(new TextDecoderStream()).getReader();
    let text = '';
    let isFirst = true;
    for (;;) {
        const { done, value } = await reader.read();
        if (done) return;
        onBytes();
        if (isFirst) onFirst();
        isFirst = false;
        const blocks = (text + value).replaceAll('\r\n', '\n').split('\n\n');
        text = blocks.pop();
        for (const block of blocks) tellEvent(block, onEvent);
    }
}

function tellEvent(block, onEvent) {
    let name = 'message';
    const data = [];
    for (const line of block.split('\n')) {
        if (line.startsWith('event:')) name = line.slice(6).trim();
        else if (line.startsWith('data:')) data.push(line.slice(5).trimStart());
    }
    if (data.length > 0) onEvent(name, JSON.parse(data.join('\n')));
}
