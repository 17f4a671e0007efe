// What others wrote is shown in a form that no terminal obeys and nobody overlooks.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { cleanJson, cleanText } from '../src/clean-text.ts'

/** What is written → what is shown. */
const TEXTS: [name: string, text: string, shown: string][] = [
  ['an escape sequence', 'a\u001b[2Jb', 'a\\u{1b}[2Jb'],
  ['a title of a window', '\u001b]0;x\u0007', '\\u{1b}]0;x\\u{7}'],
  ['the 8-bit form of its beginning', 'a\u009b2Jb', 'a\\u{9b}2Jb'],
  ['DEL', 'a\u007f', 'a\\u{7f}'],
  ['NUL', 'a\0', 'a\\u{0}'],
  ['a line feed', 'a\nroot  well', 'a\\u{a}root  well'],
  ['a carriage return', 'a\rwell', 'a\\u{d}well'],
  ['a tab', 'a\tb', 'a\\u{9}b'],
  ['NEL', 'a\u0085b', 'a\\u{85}b'],
  ['separators of lines and paragraphs', '\u2028\u2029', '\\u{2028}\\u{2029}'],
  ['an override of the direction', 'a\u202egnp.exe', 'a\\u{202e}gnp.exe'],
  ['isolates', '\u2066a\u2069', '\\u{2066}a\\u{2069}'],
  ['marks of the direction', '\u200e\u200f\u061c', '\\u{200e}\\u{200f}\\u{61c}'],
  ['a space of no width', 'pay\u200bpal', 'pay\\u{200b}pal'],
  ['a byte order mark', '\ufeffa', '\\u{feff}a'],
  ['a soft hyphen', 'a\u00adb', 'a\\u{ad}b'],
  ['a tag', 'a\u{e0041}', 'a\\u{e0041}'],
  ['a variation selector', 'a\ufe0f\u{e0100}', 'a\\u{fe0f}\\u{e0100}'],
  ['a filler that is a letter by its class', 'a\u3164', 'a\\u{3164}'],
  ['a lone surrogate', 'a\ud800b', 'a\\u{d800}b'],
  ['a private code point', '\ue000', '\\u{e000}'],
  ['a code point that is none', '\uffff', '\\u{ffff}'],
  ['a joiner between Latin letters', 'a\u200db\u200c', 'a\\u{200d}b\\u{200c}'],
  ['a second joiner', 'ک\u200c\u200cها', 'ک\u200c\\u{200c}ها'],
  ['a joiner of Persian', 'می\u200cخواهم', 'می\u200cخواهم'],
  ['a joiner of Hindi', 'क्\u200dष', 'क्\u200dष'],
  ['names of people', 'Zoë Ødegård, 山田 太郎, שרה, Nguyễn 🐘', 'Zoë Ødegård, 山田 太郎, שרה, Nguyễn 🐘'],
  ['a path of another system', 'C:\\users\\new', 'C:\\users\\new'],
]

describe('clean text', () => {
  it.each(TEXTS)('shows %s', (_, text, shown) => {
    expect(cleanText(text)).toBe(shown)
  })

  it('stays as it is when it is cleaned again', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), text => {
        const clean = cleanText(text)
        expect(clean).not.toMatch(/[\p{Cc}\p{Zl}\p{Zp}\p{Cs}\p{Bidi_Control}]/u)
        expect(cleanText(clean)).toBe(clean)
      }),
    )
  })
})

describe('clean JSON', () => {
  it.each([undefined, 2])('holds the same values, and only line feeds between them', indent => {
    for (const value of [Object.fromEntries(TEXTS.map(([name, text]) => [`${text}${name}`, text])), ['a\u{e0041}']]) {
      const json = cleanJson(JSON.stringify(value, null, indent))
      expect(JSON.parse(json)).toEqual(value)
      expect(json.replaceAll('\n', '')).not.toMatch(/[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/u)
    }
  })

  it('escapes a code point of two units by both', () => {
    expect(cleanJson('"\u{e0041}\u009b"')).toBe('"\\udb40\\udc41\\u009b"')
  })
})
