// The part of a page that stays live: its markup, and the same texts by the ids of their elements, so that the browser can put
// new ones in. A page writes each text once, through `text` or `attribute`; both forms come of that.
import { createHash } from 'node:crypto'
import { type Html, html } from '../html.ts'

/**
 * What `browser/live.js` may set besides texts. None of them runs anything or leads anywhere. Where `data-state` changes,
 * the mark in the element is drawn anew for that state.
 */
export const LIVE_ATTRIBUTES = [
  ...['value', 'max', 'data-tone', 'data-state', 'datetime'],
  // What is drawn: its place and its form.
  ...['d', 'points', 'x', 'y', 'y1', 'y2', 'width'],
] as const
export type LiveAttribute = (typeof LIVE_ATTRIBUTES)[number]

/** By `id` for the text of an element, by `id@attribute` for an attribute of it. */
export type Texts = Readonly<Record<string, string>>

export interface LiveTexts {
  /**
   * What texts can't change: which elements there are, and in which order. A browser whose page has another shape asks for
   * the page anew.
   */
  shape: string
  texts: Texts
  /** The moment of all this, as people read it: `12:03:11`. */
  at: string
  /** Nothing of it changes any more: a stream ends with it. */
  isLast?: true
}

export interface LivePart {
  /** A text that changes, as an element with this id: `<span id="batch-42-rows">1,204</span>`. */
  text(id: string, text: string): Html
  /**
   * As `text`, for what is not known any more when the page gets no news: the browser then writes `unknown since 12:03:11` over
   * it, or `?` if it is `short`, as the cells of a table are.
   */
  figure(id: string, text: string, form?: 'short'): Html
  /** The text of an element that has this id itself: `<desc id="chart-desc">${part.content('chart-desc', '…')}</desc>`. */
  content(id: string, text: string): string
  /** The value of an attribute that changes; the element must have this id. */
  attribute(id: string, name: LiveAttribute, value: string | number): string
  /** Something else that the page depends on, such as the order of a list: if it changes, the page is asked for anew. */
  fixed(what: string): void
  /** What was written so far. `at`: the moment of it. `isLast`: nothing of it changes any more. */
  texts(at: string, isLast?: boolean): LiveTexts
}

export function openLivePart(): LivePart {
  const texts: Record<string, string> = {}
  const fixed: string[] = []
  const note = (key: string, text: string) => {
    if (key in texts) throw new Error(`${key} is written twice`)
    texts[key] = text
  }
  return {
    text(id, text) {
      note(id, text)
      return html`<span id="${id}">${text}</span>`
    },
    figure(id, text, form) {
      note(id, text)
      return html`<span id="${id}" data-figure="${form ?? 'long'}">${text}</span>`
    },
    content(id, text) {
      note(id, text)
      return text
    },
    attribute(id, name, value) {
      note(`${id}@${name}`, String(value))
      return String(value)
    },
    fixed: what => fixed.push(what),
    texts: (at, isLast = false) => ({
      shape: hashOf([...Object.keys(texts), '', ...fixed]),
      texts: { ...texts },
      at,
      ...(isLast ? { isLast } : {}),
    }),
  }
}

/** A text as a part of an id. Different texts differ: every character but letters, digits and hyphens is written by its number. */
export function idOf(text: string): string {
  return text.replace(/[^A-Za-z0-9-]/g, sign => `_${sign.charCodeAt(0).toString(16)}_`)
}

/** What differs from `before`; everything without it. */
export function changesOf(before: Texts | undefined, after: Texts): Texts {
  if (!before) return after
  return Object.fromEntries(Object.entries(after).filter(([key, text]) => before[key] !== text))
}

const hashOf = (words: readonly string[]) =>
  createHash('sha256').update(words.join('\n')).digest('base64url').slice(0, 16)
