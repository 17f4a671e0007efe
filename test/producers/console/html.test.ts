// The template of pages: nothing that a sender wrote becomes markup, and a value stands only where escaping is enough.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Html, html, outside, Path, path } from '../../../producers/console/html.ts'

const HOSTILE = [
  '<script>alert(1)</script>',
  '"><img src=x onerror=alert(1)>',
  "' onmouseover='alert(1)",
  '`onclick=alert(1)`',
  '</title><svg onload=alert(1)>',
  '&lt;b&gt;',
  '<!--',
  '\u0000<b>',
  '\u2028</script>',
]

describe('a value', () => {
  it.each(HOSTILE)('is text wherever it stands: %j', text => {
    const inText = String(html`<p>${text}</p>`)
    const inside = inText.slice(3, -4)
    expect(inside).not.toMatch(/[<>"'`]/)
    const quoted = String(html`<p title="${text}" class="a ${text} b">x</p>`)
    expect(quoted.replace(/="[^"]*"/g, '')).toBe('<p title class>x</p>')
    expect(quoted.match(/[<>]/g)).toHaveLength(4)
  })

  it('comes back as it was when a browser reads it', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), text => {
        const inside = String(html`<p>${text}</p>`).slice(3, -4)
        expect(inside.replace(/&#(\d+);/g, (_, code) => String.fromCharCode(Number(code)))).toBe(text)
      }),
    )
  })

  it('that a template made stays markup, in lists too; nothing is written for what is absent', () => {
    const item = (text: string) => html`<li>${text}</li>`
    expect(String(html`<ul>${['<', 'b'].map(item)}</ul>${undefined}`)).toBe('<ul><li>&#60;</li><li>b</li></ul>')
  })

  it('can’t pass for markup', () => {
    const forged = { toString: () => '<b>', text: '<b>' }
    expect(() => html`<p>${forged as unknown as Html}</p>`).toThrow(TypeError)
    expect(() => new Html(Symbol('forged') as never, '<b>')).toThrow(TypeError)
    expect(() => new Path(Symbol('forged') as never, 'javascript:alert(1)')).toThrow(TypeError)
  })
})

describe('a template', () => {
  const one = 'x'
  it.each([
    ['in an attribute without quotes', () => html`<p class=${one}>x</p>`],
    ['in an attribute in single quotes', () => html`<p class='${one}'>x</p>`],
    ['as the name of an attribute', () => html`<p ${one}="x">x</p>`],
    ['as the name of an element', () => html`<${one}>x</p>`],
    ['in a comment', () => html`<!-- ${one} -->`],
    ['in a script', () => html`<script>${one}</script>`],
    ['in a style', () => html`<style>${one}</style>`],
    ['in an attribute that runs', () => html`<p onclick="${one}">x</p>`],
    ['in a style attribute', () => html`<p style="${one}">x</p>`],
    ['in a frame’s document', () => html`<p srcdoc="${one}">x</p>`],
    ['as a URL that no path made', () => html`<a href="${one}">x</a>`],
    ['as a part of a URL', () => html`<a href="/${path`/x`}">x</a>`],
    ['as markup in an attribute', () => html`<p title="${html`<b>x</b>`}">x</p>`],
  ])('refuses a value %s', (_where, make) => {
    expect(make).toThrow(TypeError)
  })

  it('ends outside of its tags', () => {
    expect(() => html`<p class="x`).toThrow(TypeError)
    expect(() => html`<p>${one}</p><p`).toThrow(TypeError)
  })
})

describe('a path', () => {
  it('holds each value as one part', () => {
    expect(path`/batches/${'a/../b?c#d'}/x`.text).toBe('/batches/a%2F..%2Fb%3Fc%23d/x')
    expect(String(html`<a href="${path`/batches?before=${7}`}">x</a>`)).toBe('<a href="/batches?before=7">x</a>')
  })

  it('leads to this site alone', () => {
    for (const make of [
      () => path`//evil.example`,
      () => path`/\\evil.example`,
      () => path`javascript:x`,
      () => path``,
    ])
      expect(make).toThrow(TypeError)
    for (const part of ['', '.', '..']) expect(() => path`/batches/${part}`).toThrow(TypeError)
  })
})

describe('a link to another site', () => {
  it('is a whole URL of https or http', () => {
    const to = outside(new URL('https://login.example.com/auth?a="b"&c=\'<'))
    expect(String(html`<a href="${to}">x</a>`)).toBe(
      '<a href="https://login.example.com/auth?a=%22b%22&#38;c=%27%3C">x</a>',
    )
    for (const url of ['javascript:alert(1)', 'data:text/html,x', 'file:///etc/passwd'])
      expect(() => outside(new URL(url))).toThrow(TypeError)
  })
})
