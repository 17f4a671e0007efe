// Whether a text shows a card, against the functions as they were before texts were judged in columns. Half of the texts are
// built from the cards of a chunk, half from an alphabet that is rich in digits; hits of each kind are counted.
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { couldHoldNumber, nameRefusal } from '../../src/job/pan-in-names.ts'
import { formsOf, hasDigits, PAN_LENGTH } from '../../src/token/pan.ts'
import { couldLookLikeCard, openPanLookalikes } from '../../src/token/pan-lookalike.ts'
import { UUIDS } from '../../src/token/possible-pan.ts'

/** The functions of release 0.4, word for word but for their names. */
const FROZEN = {
  couldHoldDigits(text: string, least: number): boolean {
    let digits = 0
    for (let index = 0; index < text.length; index += 1) {
      const code = text.charCodeAt(index)
      if (code > 0x7f) return true
      if (code >= 0x30 && code <= 0x39) digits += 1
    }
    return digits >= least
  },
  plainOf: (text: string) => (/[^\0-\x7f]/.test(text) ? text.normalize('NFKC') : text),
  digitsOf: (text: string) => FROZEN.plainOf(text).replace(/\D+/g, ''),
  digitRunsOf(text: string): string[] {
    const parts = FROZEN.plainOf(text)
      .replace(UUIDS, 'x')
      .split(/\p{L}+/u)
    return parts.map(FROZEN.digitsOf).filter(digits => digits.length >= PAN_LENGTH.least)
  },
  couldLookLikeCard: (text: string) =>
    text.length >= PAN_LENGTH.least &&
    FROZEN.couldHoldDigits(text, PAN_LENGTH.least) &&
    FROZEN.digitRunsOf(text).length > 0,
  endsKeyOf: (number: string) => `${number.slice(0, 6)}${number.slice(-4)}${number.length}`,
  openPanLookalikes() {
    const looks = new Set<string>()
    const lengths = new Set<number>()
    const isLike = (digits: string, start: number, length: number) =>
      start + length <= digits.length && looks.has(FROZEN.endsKeyOf(digits.slice(start, start + length)))
    return {
      add(number: string) {
        for (const form of formsOf(number)) {
          if (form.length < PAN_LENGTH.least || form.length > PAN_LENGTH.most) continue
          looks.add(FROZEN.endsKeyOf(form))
          lengths.add(form.length)
        }
      },
      isIn: (text: string) =>
        FROZEN.digitRunsOf(text).some(digits =>
          [...lengths].some(length => Array.from(digits).some((_, start) => isLike(digits, start, length))),
        ),
    }
  },
  /** The rule of a name against its own card. */
  givesAway(name: string, number: string): boolean {
    const isShown = (form: string) => {
      const digits = FROZEN.digitsOf(name)
      const [bin, lastFour] = [form.slice(0, 6), form.slice(-4)]
      if (digits.length < form.length) return false
      for (let at = digits.indexOf(bin); at >= 0; at = digits.indexOf(bin, at + 1))
        if (digits.startsWith(lastFour, at + Math.max(6, form.length - 4))) return true
      return false
    }
    return FROZEN.couldHoldDigits(name, PAN_LENGTH.least) && formsOf(number).some(isShown)
  },
}

const CARDS = [
  '4111111111111111',
  '378282246310005',
  '30569309025904',
  '6759649826438453',
  '676770000000',
  '6304000000000000000',
  '0004111111111111111',
  '5555555555554443',
]
const wide = (text: string) => text.replace(/\d/g, digit => String.fromCharCode(digit.charCodeAt(0) + 0xfee0))
const superscript = (text: string) => text.replace(/\d/g, digit => '⁰¹²³⁴⁵⁶⁷⁸⁹'[Number(digit)] ?? '')
const astral = (text: string) => text.replace(/\d/g, digit => String.fromCodePoint(0x1d7ce + Number(digit)))

/** How a text is made of a card. */
const KINDS: Readonly<Record<string, (card: string, filler: string) => string>> = {
  plain: card => card,
  'within digits': (card, filler) => `${filler}${card}${filler}`,
  'with another middle': (card, filler) =>
    `${card.slice(0, 6)}${filler.padEnd(card.length, '7').slice(0, card.length - 10)}${card.slice(-4)}`,
  'with joiners': card => [...card].join('\u200d'),
  'with marks': card => [...card].join('-\u0301'),
  'with letters': card => [...card].join('a'),
  'in full width': wide,
  'in superscript': superscript,
  'beyond the basic plane': astral,
  'in a UUID': card =>
    `${card.padEnd(8, '0').slice(0, 8)}-${card.padEnd(12, '0').slice(8, 12)}-${card.padEnd(16, '0').slice(12, 16)}-abcd-abcdefabcdef`,
  'behind a letter': (card, filler) => `${filler}x${card}`,
  'without a digit': card => card.slice(1),
}

it('says the same as before of each text, with the chunk’s cards and with its own', () => {
  const hits = { chunk: new Map<string, number>(), own: new Map<string, number>() }
  const count = (map: Map<string, number>, kind: string) => map.set(kind, (map.get(kind) ?? 0) + 1)
  const filler = fc.string({ unit: fc.constantFrom(...'0123456789'), maxLength: 30 })
  const built = fc
    .tuple(fc.constantFrom(...Object.keys(KINDS)), fc.constantFrom(...CARDS), filler)
    .map(([kind, card, some]) => ({ kind, text: KINDS[kind]?.(card, some) ?? '' }))
  const rich = fc
    .string({ unit: fc.constantFrom(...('00112345678９²⑫⅒abé漢 -_/\u0301\u200d😀'.match(/./gu) ?? [])), maxLength: 60 })
    .map(text => ({ kind: 'free', text }))
  const some = fc.subarray(CARDS, { minLength: 1 })
  fc.assert(
    fc.property(fc.oneof(built, rich), some, ({ kind, text }, cards) => {
      const [now, before] = [openPanLookalikes(), FROZEN.openPanLookalikes()]
      for (const card of cards) {
        now.add(card)
        before.add(card)
        const isOwn = FROZEN.givesAway(text, card)
        expect(nameRefusal({ reference: text }, [card]) !== undefined).toBe(isOwn)
        if (isOwn) {
          count(hits.own, kind)
          // Whoever doesn't ask `nameRefusal` has asked this before.
          expect(couldHoldNumber(text) && hasDigits(text, PAN_LENGTH.least)).toBe(true)
        }
      }
      const isHit = FROZEN.couldLookLikeCard(text) && before.isIn(text)
      expect(couldLookLikeCard(text) && now.isIn(text)).toBe(isHit)
      expect(now.isIn(text)).toBe(before.isIn(text))
      if (isHit) count(hits.chunk, kind)
    }),
    { numRuns: 30_000 },
  )
  const notInChunk = ['with letters', 'in a UUID', 'without a digit']
  for (const kind of Object.keys(KINDS)) {
    if (!notInChunk.includes(kind)) expect(hits.chunk.get(kind) ?? 0, `chunk, ${kind}`).toBeGreaterThan(0)
    if (kind !== 'without a digit') expect(hits.own.get(kind) ?? 0, `own, ${kind}`).toBeGreaterThan(0)
  }
})
