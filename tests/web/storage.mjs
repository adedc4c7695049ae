// SPDX-License-Identifier: Apache-2.0
// Connections with their states, and repositories with exports and a drill, as the script has made them.
import { expect, faults, start, tellScript } from './browser.mjs';

const folder = process.argv[2];
const { page, go, check, picture, finish } = await start();
const offsite = page.locator('.repository').filter({ hasText: 'file:///srv/backups' });

function row(name) {
    return page.getByRole('row').filter({ hasText: name });
}

await check('connections that work are ready', async () => {
    await go('connections');
    for (const name of ['attic', 'fast'])
        await row(name).getByText('ready', { exact: true }).waitFor();
});

await check('a driver that has ended is down, with its error', async () => {
    const nas = row('nas');
    await nas.getByText('down', { exact: true }).waitFor();
    const trouble = await nas.locator('.trouble').innerText();
    expect(trouble.includes('/srv/nas.sock'), `the error is: ${trouble}`);
    await picture('connections');
});

await check('what needs attention is named with its reason, and leads to its view', async () => {
    await go('nodes');
    const alert = page.getByRole('alert').filter({ hasText: '1 thing needs attention' });
    const item = alert.getByRole('listitem');
    expect((await item.innerText()).includes('/srv/nas.sock'), `it says: ${await item.innerText()}`);
    await item.getByRole('link', { name: 'connection "nas"' }).click();
    await page.getByRole('heading', { level: 1, name: 'Connections' }).waitFor();
});

await check('a repository shows its exports and when a drill succeeded', async () => {
    await go('exports');
    await offsite.getByText('ready', { exact: true }).waitFor();
    await offsite.getByText('Exports in offsite').click();
    for (const name of ['website-monday', 'website-tuesday', 'orders-monday', 'orders-tuesday'])
        await row(name).waitFor();
    for (const label of ['Last export', 'Last good drill']) {
        const shown = await offsite.locator('.tile').filter({ hasText: label }).innerText();
        expect(/ago|just now/.test(shown), `the tile shows no age: ${shown}`);
    }
});

await check('an export has a short id, and its whole id as the title', async () => {
    const id = row('website-monday').locator('.mono');
    const [short, whole] = [await id.innerText(), await id.getAttribute('title')];
    expect(/^[0-9a-f]{12}$/.test(short), `the short one is ${short}`);
    expect(whole.length === 64 && whole.startsWith(short), `the whole one is ${whole}`);
});

await check('a repository that cannot be used says why', async () => {
    const archive = page.locator('.repository').filter({ hasText: 'file:///srv/archive' });
    await archive.getByText('failed', { exact: true }).waitFor();
    expect((await archive.locator('.trouble').first().innerText()).length > 0, 'it does not');
});

await check('axe finds nothing serious in views with content and trouble', async () => {
    for (const view of ['nodes', 'connections', 'exports'])
        for (const theme of ['dark', 'light']) {
            await go(view);
            await page.emulateMedia({ colorScheme: theme });
            await page.waitForFunction(() => !/Loading/.test(document.querySelector('main').innerText));
            const found = await faults(page);
            expect(found === '', `${view}, ${theme}: ${found}`);
        }
    await offsite.getByText('Exports in offsite').click();
    await row('website-monday').waitFor();
});

await check('an export that another program has removed is not shown any more', async () => {
    await tellScript(folder, 'remove');
    await row('orders-monday').waitFor({ state: 'detached' });
    await row('orders-tuesday').waitFor();
});

await check('volumes of a connection come with it, and those that others make there come, too', async () => {
    const theirs = page.locator('#list-volumes .name[title*="(v:nas/"]');
    const missing = page.locator('#list-volumes').getByText('some may be missing');
    await go('volumes');
    await missing.waitFor();
    expect((await theirs.count()) === 0, 'those of the connection are there');
    await tellScript(folder, 'restart');
    await theirs.first().waitFor();
    expect((await theirs.count()) === 1, `there are ${await theirs.count()}`);
    await missing.waitFor({ state: 'detached' });
    await tellScript(folder, 'make');
    // As if a minute had passed.
    await page.evaluate(() => {
        const { now } = Date;
        Date.now = () => now() + 61000;
    });
    await theirs.nth(1).waitFor();
    await page.reload();
    await go('exports');
    await offsite.getByText('Exports in offsite').click();
});

await check('ages grow with the clock', async () => {
    await page.clock.setSystemTime(Date.now() + 3 * 3600 * 1000);
    await offsite.locator('.tile').getByText('3 h ago').first().waitFor();
    await picture('exports');
});
// No test makes thousands of exports: the API's answers are made up.
await check('of 2,500 exports (stubbed) the newest 200 are drawn, and more when asked', async () => {
    const total = 2500;
    await page.route(/\/api\/v1\/exports\?/, (route) => {
        const from = Number(new URL(route.request().url()).searchParams.get('after') || 0);
        const exports = Array.from({ length: Math.min(1000, total - from) }, (_, at) => ({
            id: String(from + at).padStart(64, '0'),
            snapshotName: `nightly-${from + at + 1}`,
            volumeName: 'website',
            timeMs: 1e12 + from + at,
            contentBytes: 1,
        }));
        const next = from + 1000 < total ? String(from + 1000) : '';
        return route.fulfill({ json: { exports, next } });
    });
    const names = offsite.locator('tbody strong');
    await offsite.getByText('Exports in offsite').click();
    await offsite.locator('details:not([open])').waitFor();
    await offsite.getByText('Exports in offsite').click();
    await offsite.getByText('The newest 200 of 2,500.').waitFor();
    expect((await names.first().innerText()) === 'nightly-2500', 'the newest is not the first');
    expect((await names.count()) === 200, `${await names.count()} rows exist`);
    await offsite.getByRole('button', { name: 'Show more' }).click();
    await offsite.getByText('The newest 400 of 2,500.').waitFor();
    expect((await names.last().innerText()) === 'nightly-2101', 'the oldest shown is another one');
});
await finish();
