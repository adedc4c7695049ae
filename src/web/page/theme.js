// SPDX-License-Identifier: Apache-2.0
// Runs before the first paint, so that a chosen theme does not flash. "" means: as the system says.
document.documentElement.dataset.theme = localStorage.getItem('skycap-theme') ?? '';
