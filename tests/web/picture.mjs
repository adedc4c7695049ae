// SPDX-License-Identifier: Apache-2.0
// Makes a screenshot small: a PNG of at most 256 colours, those that are most frequent and not alike.
import zlib from 'node:zlib';

const ALIKE = 60; // the square of a distance between two colours
const SIGNATURE = Buffer.from([137, 80, 78, 71, 13, 10, 26, 10]);

// A PNG with 8 bits for each of 3 or 4 channels, as browsers make it.
export function shrinkPicture(png) {
    const { width, height, channels, packed } = readParts(png);
    const pixels = unfilter(zlib.inflateSync(packed), width, height, channels);
    const { palette, indexOf } = choosePalette(pixels, channels);
    const rows = Buffer.alloc((width + 1) * height);
    for (let y = 0; y < height; y += 1)
        for (let x = 0; x < width; x += 1)
            rows[y * (width + 1) + 1 + x] = indexOf(colourAt(pixels, (y * width + x) * channels));
    const header = Buffer.alloc(13);
    header.writeUInt32BE(width, 0);
    header.writeUInt32BE(height, 4);
    header.set([8, 3, 0, 0, 0], 8);
    return Buffer.concat([
        SIGNATURE,
        chunk('IHDR', header),
        chunk('PLTE', Buffer.from(palette.flatMap((c) => [c >> 16, (c >> 8) & 255, c & 255]))),
        chunk('IDAT', zlib.deflateSync(rows, { level: 9 })),
        chunk('IEND', Buffer.alloc(0)),
    ]);
}

function readParts(png) {
    const parts = [];
    for (let at = 8; at < png.length;) {
        const length = png.readUInt32BE(at);
        if (png.toString('latin1', at + 4, at + 8) === 'IDAT')
            parts.push(png.subarray(at + 8, at + 8 + length));
        at += length + 12;
    }
    const channels = png[25] === 6 ? 4 : 3;
    return {
        width: png.readUInt32BE(16),
        height: png.readUInt32BE(20),
        channels,
        packed: Buffer.concat(parts),
    };
}

// The five filters of the PNG specification, chapter 9.
function unfilter(bytes, width, height, channels) {
    const length = width * channels;
    const out = Buffer.alloc(length * height);
    for (let y = 0; y < height; y += 1) {
        const filter = bytes[y * (length + 1)];
        for (let x = 0; x < length; x += 1) {
            const left = x >= channels ? out[y * length + x - channels] : 0;
            const up = y > 0 ? out[(y - 1) * length + x] : 0;
            const corner = x >= channels && y > 0 ? out[(y - 1) * length + x - channels] : 0;
            const guess = [0, left, up, (left + up) >> 1, paeth(left, up, corner)][filter];
            out[y * length + x] = bytes[y * (length + 1) + 1 + x] + guess;
        }
    }
    return out;
}

function paeth(left, up, corner) {
    const guess = left + up - corner;
    const [a, b, c] = [left, up, corner].map((value) => Math.abs(guess - value));
    return a <= b && a <= c ? left : b <= c ? up : corner;
}

function colourAt(pixels, at) {
    return (pixels[at] << 16) | (pixels[at + 1] << 8) | pixels[at + 2];
}

function choosePalette(pixels, channels) {
    const counts = new Map();
    for (let at = 0; at < pixels.length; at += channels) {
        const colour = colourAt(pixels, at);
        counts.set(colour, (counts.get(colour) ?? 0) + 1);
    }
    const frequent = [...counts].sort((a, b) => b[1] - a[1]).map(([colour]) => colour);
    const palette = [];
    for (const colour of frequent)
        if (palette.length < 256 && !palette.some((other) => distance(other, colour) < ALIKE))
            palette.push(colour);
    const known = new Map(palette.map((colour, index) => [colour, index]));
    const indexOf = (colour) => {
        if (!known.has(colour)) known.set(colour, nearest(palette, colour));
        return known.get(colour);
    };
    return { palette, indexOf };
}

function distance(a, b) {
    const part = (shift) => (((a >> shift) & 255) - ((b >> shift) & 255)) ** 2;
    return part(16) + part(8) + part(0);
}

function nearest(palette, colour) {
    let best = 0;
    let least = Infinity;
    palette.forEach((other, index) => {
        const away = distance(colour, other);
        if (away < least) [best, least] = [index, away];
    });
    return best;
}

function chunk(name, data) {
    const body = Buffer.concat([Buffer.from(name, 'latin1'), data]);
    const out = Buffer.alloc(body.length + 8);
    out.writeUInt32BE(data.length, 0);
    body.copy(out, 4);
    out.writeUInt32BE(crc(body), body.length + 4);
    return out;
}

function crc(bytes) {
    let value = 0xffffffff;
    for (const byte of bytes) {
        value ^= byte;
        for (let bit = 0; bit < 8; bit += 1)
            value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1;
    }
    return (value ^ 0xffffffff) >>> 0;
}
