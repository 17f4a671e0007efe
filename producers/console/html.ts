// The template of every page: html`<p>${text}</p>`. A value is escaped unless it is `Html`. A value may stand in text and
// in an attribute in double quotes, and nowhere else; a URL comes from `path`. It has no loops or conditions of its own:
// lists of values and `undefined` serve for these.

/** Markup that a template made. Only this file makes it. */
export class Html {
  readonly #text: string

  constructor(key: typeof OWN, text: string) {
    if (key !== OWN) throw new TypeError('markup is made by html`…` only')
    this.#text = text
  }

  toString(): string {
    return this.#text
  }
}

/** A path on this site, with its parts encoded; or a whole URL of another one, from `outside`. */
export class Path {
  readonly text: string

  constructor(key: typeof OWN, text: string) {
    if (key !== OWN) throw new TypeError('a path is made by path`…` or `outside` only')
    this.text = text
  }
}

const OWN = Symbol('made here')

/** `undefined` and an empty list write nothing. */
export type Value = Html | Path | string | number | undefined | readonly Value[]

/** Where a value stands. `attribute`: its name, in lower case. */
type Place = { at: 'text' } | { at: 'attribute'; name: string; isWhole: boolean }

const URLS = /^(href|src|action|formaction|poster|cite|data)$/
const NEVER = /^(on.*|style|srcdoc|srcset|ping|http-equiv)$/
const RAW = /<(script|style|iframe|template|xmp|plaintext)\b/i

const known = new WeakMap<TemplateStringsArray, readonly Place[]>()

export function html(parts: TemplateStringsArray, ...values: readonly Value[]): Html {
  const places = known.get(parts) ?? placesIn(parts)
  known.set(parts, places)
  const text = parts.map((part, at) => {
    const place = places[at]
    return place === undefined ? part : part + written(values[at], place)
  })
  return new Html(OWN, text.join(''))
}

/** A path on this site: path`/batches/${number}`. Each value is one encoded part. */
export function path(parts: TemplateStringsArray, ...values: readonly (string | number)[]): Path {
  if (!/^\/(?![/\\])/.test(parts[0] ?? '')) throw new TypeError('a path begins with one slash')
  const encoded = values.map(value => {
    if (value === '' || value === '.' || value === '..') throw new TypeError('a part of a path is a name')
    return encodeURIComponent(value)
  })
  return new Path(OWN, parts.map((part, at) => part + (encoded[at] ?? '')).join(''))
}

/** A URL of another site. No text that a sender chose belongs into its host. */
export function outside(url: URL): Path {
  if (!/^https?:$/.test(url.protocol)) throw new TypeError('a link to another site is http or https')
  return new Path(OWN, url.href)
}

function written(value: Value, place: Place): string {
  if (place.at === 'text') return textOf(value)
  if (URLS.test(place.name)) {
    if (!(value instanceof Path) || !place.isWhole) throw new TypeError(`${place.name} takes a whole path\`…\``)
    return escaped(value.text)
  }
  if (typeof value !== 'string' && typeof value !== 'number') throw new TypeError(`${place.name} takes a text`)
  return escaped(String(value))
}

function textOf(value: Value): string {
  if (value === undefined) return ''
  if (value instanceof Html) return value.toString()
  if (value instanceof Path) return escaped(value.text)
  return typeof value === 'object' ? value.map(textOf).join('') : escaped(String(value))
}

function escaped(text: string): string {
  return text.replace(/[&<>"'`]/g, found => `&#${found.charCodeAt(0)};`)
}

/** Finds where each value stands. Throws if a value stands anywhere else than in text or in a quoted attribute. */
function placesIn(parts: TemplateStringsArray): Place[] {
  let rest = ''
  const places = parts.slice(0, -1).map((part, at): Place => {
    rest = openTag(rest + part)
    if (RAW.test(parts.join(''))) throw new TypeError('an element whose text is not text takes no value')
    if (rest === '') return { at: 'text' }
    const [, name = '', before = ''] = /\s([a-z][a-z0-9:-]*)="([^"]*)$/i.exec(rest) ?? []
    if (name === '' || NEVER.test(name.toLowerCase()))
      throw new TypeError(`no value may stand after ${part.slice(-40)}`)
    const isWhole = before === '' && parts[at + 1]?.startsWith('"') === true
    // In what follows this value is a part of the quoted text.
    rest += '_'
    return { at: 'attribute', name: name.toLowerCase(), isWhole }
  })
  if (openTag(rest + (parts.at(-1) ?? '')) !== '') throw new TypeError('a template ends outside of its tags')
  return places
}

/** The tag or comment that is open at the end of `text`; empty in text. */
function openTag(text: string): string {
  const closed = text.replace(
    /<!--[\s\S]*?-->|<!doctype [a-z]+>|<\/?[a-z][a-z0-9-]*(?:\s+[a-z][a-z0-9:-]*(?:="[^"]*")?)*\s*>/gi,
    '',
  )
  const from = closed.indexOf('<')
  return from < 0 ? '' : closed.slice(from)
}
