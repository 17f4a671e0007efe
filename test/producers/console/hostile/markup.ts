// Reads a page of the console as a browser does, and more strictly: a tag has a name and quoted attributes, or the page is broken.
export interface Element {
  name: string
  attributes: Map<string, string>
}

export interface Markup {
  elements: Element[]
  /** The text, with its references resolved. */
  text: string
}

const TAG =
  /<(?:!doctype html|!--[^>]*--|\/([a-z][a-z0-9]*)|([a-z][a-zA-Z0-9]*)((?:\s+[a-zA-Z][\w-]*(?:="[^"<]*")?)*)\s*\/?)>/gi

/** Throws where something isn't text and is no tag. */
export function readMarkup(page: string): Markup {
  const elements: Element[] = []
  const text = page.replace(TAG, (_tag, _end, name: string | undefined, attributes = '') => {
    if (name !== undefined) elements.push({ name: name.toLowerCase(), attributes: attributesOf(attributes) })
    return '\n'
  })
  const broken = /[<>]/.exec(text)
  if (broken) throw new Error(`this is no tag: ${text.slice(Math.max(0, broken.index - 40), broken.index + 60)}`)
  return { elements, text: resolved(text) }
}

function attributesOf(text: string): Map<string, string> {
  const found = [...text.matchAll(/([a-zA-Z][\w-]*)(?:="([^"]*)")?/g)]
  return new Map(found.map(([, name = '', value = '']) => [name.toLowerCase(), resolved(value)]))
}

const NAMED: Record<string, string> = { amp: '&', lt: '<', gt: '>', quot: '"', nbsp: '\u00a0' }

function resolved(text: string): string {
  return text.replace(/&(?:#(\d+)|(\w+));/g, (whole, code?: string, name = '') =>
    code === undefined ? (NAMED[name] ?? whole) : String.fromCodePoint(Number(code)),
  )
}
