// SPDX-License-Identifier: Apache-2.0
// The server ends and starts again, as the script does it when this one says so: lines on stdout, signals by files in the first argument.
import fs from 'node:fs';
import { base, expect, start, token } from './browser.mjs';

const folder = process.argv[2];
const { page, go, check, forgive, finish } = await start();
const tabs = 8; // more than a browser has connections to one server

async function tell(name) {
    fs.writeFileSync(`${folder}/${name}`, '');
    while (!fs.existsSync(`${folder}/${name}-done`))
        await new Promise((resolve) => setTimeout(resolve, 50));
}

await check('the page is live', async () => {
    await go('nodes');
    await page.getByText('Live', { exact: true }).waitFor();
});

await check('a list that cannot be loaded says why, and is loaded again', async () => {
    let refusals = 1;
    await page.route(/\/api\/v1\/volumes\?/, (route) => {
        refusals -= 1;
        return refusals < 0
            ? route.continue()
            : route.fulfill({ status: 503, body: '503 Service Unavailable: it is busy\n' });
    });
    await go('volumes');
    await page.locator('#list-volumes .note').getByText('it is busy').waitFor();
    await page.locator('#list-volumes .note').getByText('There are no volumes yet.').waitFor();
    await go('nodes');
});

// A headless browser hides no tab: this is what the page would see.
function hide(tab, isHidden) {
    return tab.evaluate((value) => {
        Object.defineProperty(document, 'hidden', { configurable: true, value });
        document.dispatchEvent(new Event('visibilitychange'));
    }, isHidden);
}

await check('a hidden tab holds no stream, and shows what has changed when it is seen', async () => {
    await go('volumes');
    const ended = page.waitForEvent('requestfailed', (request) => request.url().endsWith('/events'));
    await hide(page, true);
    await ended;
    const answer = await page.request.post(`${base}/api/v1/volumes`, {
        headers: { Authorization: `Bearer ${token}` },
        data: { name: 'made-meanwhile', type: 'directory' },
    });
    expect(answer.ok(), `the server says ${answer.status()}`);
    await hide(page, false);
    await page.getByText('Live', { exact: true }).waitFor();
    await page.getByRole('grid', { name: 'Volumes' }).getByText('made-meanwhile').waitFor();
});

await check(`${tabs} tabs of which one is seen do not starve each other`, async () => {
    const others = [];
    await hide(page, true);
    while (others.length < tabs) {
        const tab = await page.context().newPage();
        others.push(tab);
        await tab.goto(`${base}/#/nodes`);
        await tab.getByText('Live', { exact: true }).waitFor();
        await hide(tab, true);
    }
    for (const tab of others) await tab.close();
    await hide(page, false);
    await page.getByText('Live', { exact: true }).waitFor();
    await go('nodes');
});

await check('it says when the connection is lost, and from when its data is', async () => {
    await tell('stop');
    await page
        .getByRole('alert')
        .getByText(/Connection lost.*What you see is from \d/)
        .waitFor();
    expect(
        await page.evaluate(() => document.body.classList.contains('stale')),
        'old data looks live',
    );
    expect((await page.getByText('Live', { exact: true }).count()) === 0, 'it still says Live');
});

await check('it is live again when the server is, without the alert', async () => {
    await tell('start');
    await page.getByText('Live', { exact: true }).waitFor();
    await page.getByRole('alert').getByText('Connection lost').waitFor({ state: 'detached' });
    expect(
        !(await page.evaluate(() => document.body.classList.contains('stale'))),
        'live data looks old',
    );
});

// A browser says itself in the console that a server has refused, or cannot be reached, if it tried meanwhile.
forgive('status of 503', true);
forgive('net::ERR_', true);
await finish();
