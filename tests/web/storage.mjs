// SPDX-License-Identifier: Apache-2.0
// Connections with their states, and repositories with exports and a drill, as the script has made them.
import { expect, start } from './browser.mjs';

const { page, go, check, picture, finish } = await start();

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

await check('a repository shows its exports and when a drill succeeded', async () => {
    await go('exports');
    const offsite = page.locator('.repository').filter({ hasText: 'file:///srv/backups' });
    await offsite.getByText('ready', { exact: true }).waitFor();
    await offsite.getByText('Exports in offsite').click();
    for (const name of ['website-monday', 'website-tuesday', 'orders-monday', 'orders-tuesday'])
        await row(name).waitFor();
    for (const label of ['Last export', 'Last good drill']) {
        const shown = await offsite.locator('.tile').filter({ hasText: label }).innerText();
        expect(/ago|just now/.test(shown), `the tile shows no age: ${shown}`);
    }
});

await check('a repository that cannot be used says why', async () => {
    const archive = page.locator('.repository').filter({ hasText: 'file:///srv/archive' });
    await archive.getByText('failed', { exact: true }).waitFor();
    expect((await archive.locator('.trouble').first().innerText()).length > 0, 'it does not');
    await picture('exports');
});
await finish();
