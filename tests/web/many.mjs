// SPDX-License-Identifier: Apache-2.0
// So many volumes (the first argument): how soon the page is there, and how long it is busy while one scrolls, searches and sorts.
import { expect, slower, start } from './browser.mjs';

const total = Number(process.argv[2]);
const firstPaintMs = 1000 * slower;
const longestTaskMs = 100 * slower;
const { page, go, check, finish } = await start();
const grid = page.getByRole('grid', { name: 'Volumes' });

await page.addInitScript(() => {
    globalThis.longest = 0;
    new PerformanceObserver((list) => {
        for (const entry of list.getEntries())
            globalThis.longest = Math.max(globalThis.longest, entry.duration);
    }).observe({ type: 'longtask', buffered: true });
});

async function staysSmooth(what, run) {
    await check(`no task takes longer than ${longestTaskMs} ms: ${what}`, async () => {
        await page.evaluate(() => (globalThis.longest = 0));
        await run();
        const longest = await page.evaluate(
            () => new Promise((resolve) => setTimeout(() => resolve(globalThis.longest), 100)),
        );
        console.log(
            `# the longest task, ${what}: ${longest ? `${Math.round(longest)} ms` : 'below 50 ms'}`,
        );
        expect(longest <= longestTaskMs, `one took ${longest} ms`);
    });
}

function shown(text) {
    return page.waitForFunction(
        (wanted) => document.querySelector('#list-volumes .title p').textContent === wanted,
        text,
    );
}

const commas = (number) => number.toLocaleString('en-US');

await check(`the first paint comes within ${firstPaintMs} ms`, async () => {
    await go('volumes');
    await page.locator('#list-volumes .rows .name').first().waitFor();
    const [paint, rows] = await page.evaluate(() => [
        performance.getEntriesByName('first-contentful-paint')[0].startTime,
        performance.now(),
    ]);
    console.log(
        `# first paint after ${Math.round(paint)} ms, first rows within ${Math.round(rows)} ms`,
    );
    expect(paint < firstPaintMs, `it came after ${paint} ms`);
});

await check('long tasks are noticed', async () => {
    await page.evaluate(() =>
        setTimeout(() => {
            for (const end = performance.now() + 150; performance.now() < end;);
        }),
    );
    await page.waitForFunction(() => globalThis.longest >= 150);
});

await staysSmooth('while all are loaded', async () => {
    await page.waitForFunction(
        (rows) =>
            document.querySelector('#list-volumes .grid').getAttribute('aria-rowcount') ===
            String(rows),
        total + 1,
        { timeout: 60000 * slower },
    );
    console.log(
        `# all ${commas(total)} volumes after ${await page.evaluate(() => Math.round(performance.now()))} ms`,
    );
});

await staysSmooth('scrolling', async () => {
    const box = await grid.boundingBox();
    await page.mouse.move(box.x + 100, box.y + 200);
    for (let step = 0; step < 60; step += 1) {
        await page.mouse.wheel(0, step % 3 === 0 ? 300 : 5000);
        await page.waitForTimeout(16);
    }
    for (const part of [0.5, 0.1, 0.9, 1]) {
        await grid.evaluate(
            (element, place) => (element.scrollTop = place * element.scrollHeight),
            part,
        );
        await page.waitForFunction(
            () => !document.querySelector('#list-volumes .waiting:not([hidden])'),
        );
    }
});

await check('the last row is there, and only some rows exist', async () => {
    await grid.locator(`[aria-rowindex="${total + 1}"]:not([hidden]) .name`).waitFor();
    expect((await grid.locator('.row').count()) < 100, 'rows out of sight exist');
});

await staysSmooth('searching', async () => {
    await page.getByLabel('Search volumes').fill('no-such-name');
    await shown(`0 of ${commas(total)}`);
    await page.getByLabel('Search volumes').fill('');
    await shown(commas(total));
});

await staysSmooth('sorting', async () => {
    const first = () => grid.locator('[aria-rowindex="2"] .name').textContent();
    await grid.evaluate((element) => (element.scrollTop = 0));
    const before = await first();
    await grid.getByRole('button', { name: 'Name' }).click();
    await page.waitForFunction(
        (text) =>
            document.querySelector('#list-volumes [aria-rowindex="2"] .name').textContent !== text,
        before,
    );
});
await finish();
