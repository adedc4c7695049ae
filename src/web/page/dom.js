// SPDX-License-Identifier: Apache-2.0
// Draws: h() describes elements, render() makes the children of an element be as described. It keeps
// elements that are there already, so that focus, selection and scroll positions stay.

const SVG = 'http://www.w3.org/2000/svg';

export function h(tag, props, ...children) {
    return { tag, props: props ?? {}, children: clean(children) };
}

export function render(parent, ...children) {
    reconcile(parent, clean(children));
}

// Makes one new element, for what is drawn only once.
export function make(tag, props, ...children) {
    const holder = document.createDocumentFragment();
    reconcile(holder, [h(tag, props, ...children)]);
    return holder.firstChild;
}

function clean(children) {
    return children
        .flat(Infinity)
        .filter(
            (child) => child !== null && child !== undefined && child !== false && child !== '',
        );
}

function reconcile(parent, wanted) {
    const keys = new Set(
        wanted.map((child) => child.props?.key).filter((key) => key !== undefined),
    );
    const keyed = new Map();
    for (const node of [...parent.childNodes]) {
        if (node.key === undefined) continue;
        if (keys.has(node.key)) keyed.set(node.key, node);
        else node.remove();
    }
    let at = parent.firstChild;
    for (const child of wanted) {
        const node =
            typeof child === 'object'
                ? placeElement(parent, at, child, keyed)
                : placeText(parent, at, String(child));
        at = node.nextSibling;
    }
    while (at) {
        const next = at.nextSibling;
        at.remove();
        at = next;
    }
}

function placeText(parent, at, text) {
    if (at?.nodeType === Node.TEXT_NODE) {
        if (at.data !== text) at.data = text;
        return at;
    }
    return parent.insertBefore(document.createTextNode(text), at);
}

function placeElement(parent, at, wanted, keyed) {
    const { key } = wanted.props;
    const found = key === undefined ? at : keyed.get(key);
    const fits =
        found?.nodeType === Node.ELEMENT_NODE &&
        found.key === key &&
        found.localName === wanted.tag;
    const node = fits ? found : createElement(parent, wanted);
    if (node !== at) parent.insertBefore(node, at);
    setProps(node, wanted.props);
    reconcile(node, wanted.children);
    return node;
}

function createElement(parent, wanted) {
    const isSvg =
        wanted.tag === 'svg' ||
        (parent.namespaceURI === SVG && parent.localName !== 'foreignObject');
    const node = isSvg
        ? document.createElementNS(SVG, wanted.tag)
        : document.createElement(wanted.tag);
    node.key = wanted.props.key;
    node.shown = {};
    return node;
}

function setProps(node, props) {
    const shown = node.shown ?? {};
    for (const name in shown) if (!(name in props)) setProp(node, name, null);
    for (const name in props)
        if (name !== 'key' && props[name] !== shown[name]) setProp(node, name, props[name]);
    node.shown = props;
}

// Styles are set one by one: the page's content security policy refuses style attributes.
function setProp(node, name, value) {
    if (name.startsWith('on')) node[name] = value;
    else if (name === 'style')
        for (const part in value ?? {}) node.style.setProperty(part, value[part]);
    else if (value === null || value === undefined || value === false) node.removeAttribute(name);
    else node.setAttribute(name, value === true ? '' : value);
}
