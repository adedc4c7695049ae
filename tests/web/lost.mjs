// SPDX-License-Identifier: Apache-2.0
// The server ends and starts again, as the script does it when this one says so: lines on stdout, signals by files in the first argument.
import { base, expect, faults, start, tellScript, token } from './browser.mjs';

const folder = process.argv[2];
const { page, go, check, forgive, finish } = await start();
const tabs = 8; // more than a browser has connections to one server

// As another client does.
async function make(name) {
    const answer = await page.request.post(`${base}/api/v1/volumes`, {
        headers: { Authorization: `Bearer ${token}` },
        data: { name, type: 'directory' },
    });
    expect(answer.ok(), `the server says ${answer.status()}`);
}

// Refuses what fits from now on; the result ends that.
async function refuse(path) {
    const error = { code: 'INTERNAL', message: 'it cannot be read' };
    await page.route(path, (route) => route.fulfill({ status: 500, json: { error } }));
    return () => page.unroute(path);
}

const old = page.getByRole('alert').getByText(/not up to date. It is from \d.*it cannot be read/);
const rows = page.getByRole('grid', { name: 'Volumes' });

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
    await make('made-meanwhile');
    await hide(page, false);
    await page.getByText('Live', { exact: true }).waitFor();
    await page.getByRole('grid', { name: 'Volumes' }).getByText('made-meanwhile').waitFor();
});

await check('a list that cannot be loaded again says from when it is, until it can', async () => {
    const accept = await refuse(/\/api\/v1\/volumes\?/);
    await make('made-unseen');
    await old.waitFor();
    await rows.getByText('made-meanwhile').waitFor();
    await accept();
    await rows.getByText('made-unseen').waitFor();
    await old.waitFor({ state: 'detached' });
});

await check('a panel that cannot be loaded again says from when it is, until it can', async () => {
    const panel = page.locator('#detail');
    await rows.getByText('made-unseen').click();
    await panel.locator('dd').getByText('directory', { exact: true }).waitFor();
    const accept = await refuse(/\/api\/v1\/volume\?/);
    await panel.getByText(/This is from \d.*it cannot be read/).waitFor();
    await panel.locator('dd').getByText('directory', { exact: true }).waitFor();
    await accept();
    await panel.getByText('it cannot be read').waitFor({ state: 'detached' });
    await page.keyboard.press('Escape');
});

for (const view of ['nodes', 'exports'])
    await check(`${view} that cannot be loaded again say from when they are`, async () => {
        await go(view);
        await page.getByRole('heading', { level: 1 }).waitFor();
        await page.waitForFunction(() => !/Loading/.test(document.querySelector('main').innerText));
        const path = view === 'exports' ? 'repositories' : view;
        const accept = await refuse(new RegExp(`/api/v1/${path}$`));
        await old.waitFor();
        await accept();
        await old.waitFor({ state: 'detached' });
    });

await check('an answer that comes after that of a later request is not shown', async () => {
    let isFirst = true;
    let answerFirst;
    const later = new Promise((resolve) => (answerFirst = resolve));
    await page.route(/\/api\/v1\/nodes$/, async (route) => {
        const wasFirst = isFirst;
        isFirst = false;
        const response = await route.fetch();
        const answer = await response.json();
        answer.nodes[0].version = wasFirst ? 'overtaken' : 'newest';
        if (wasFirst) await later;
        await route.fulfill({ response, json: answer });
    });
    await go('nodes');
    await page.getByText('newest', { exact: true }).waitFor();
    const ended = page.waitForResponse(/\/api\/v1\/nodes$/);
    answerFirst();
    await ended;
    await page.evaluate(() => new Promise(requestAnimationFrame));
    await page.evaluate(() => new Promise(requestAnimationFrame));
    expect((await page.getByText('overtaken', { exact: true }).count()) === 0, 'it is shown');
    await page.unroute(/\/api\/v1\/nodes$/);
});
forgive('status of 500');

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
    await tellScript(folder, 'stop');
    await page
        .getByRole('alert')
        .getByText(/Connection lost.*What you see is from \d/)
        .waitFor();
    expect(
        await page.evaluate(() => document.body.classList.contains('stale')),
        'old data looks live',
    );
    expect((await page.getByText('Live', { exact: true }).count()) === 0, 'it still says Live');
    for (const theme of ['dark', 'light']) {
        await page.emulateMedia({ colorScheme: theme });
        const found = await faults(page);
        expect(found === '', `axe, ${theme}: ${found}`);
    }
});

await check('it is live again when the server is, without the alert', async () => {
    await tellScript(folder, 'start');
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
