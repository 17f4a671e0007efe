import { describe, expect, it } from 'vitest'
import { BUILT_IN } from '../../../../producers/rows/profile/built-in.ts'
import { Profile, parseProfile } from '../../../../producers/rows/profile/profile.ts'
import { profile } from './profiled.ts'

const wrong = (changes: Record<string, unknown>, columns: Record<string, unknown> = {}) => {
  try {
    profile(changes, columns)
  } catch (error) {
    return (error as Error).message
  }
  return 'no error'
}

/** A profile whose file that goes back has this one column. */
const back = (column: Record<string, unknown>) => ({ return: { columns: [{ name: 'c', ...column }] } })

describe('parseProfile', () => {
  it('takes what the built-in profiles say', () => {
    for (const one of Object.values(BUILT_IN)) expect(parseProfile(one.name, JSON.stringify(one))).toEqual(one)
  })

  it('refuses text that is no JSON object, quoting nothing of it', () => {
    expect(() => parseProfile('cards.csv', 'id,4111111111111111')).toThrow(
      'cards.csv is no profile: it is not a JSON object. Write it as one JSON object that names no member twice;',
    )
    expect(() => parseProfile('p.json', '{"profile":1,"profile":1}')).toThrow(/names no member twice/)
  })

  it('refuses a file of cards given as a profile, quoting nothing of it', () => {
    const error = (() => {
      try {
        return parseProfile('cards.json', '{"4111111111111111":"4111111111111111","name":["ADA"]}')
      } catch (thrown) {
        return String(thrown)
      }
    })()
    expect(error).not.toMatch(/4111|ADA/)
    expect(error).toMatch(/the profile has the unknown member \(a name not shown here\)/)
  })

  it.each([
    [{ formt: 1 }, {}, /the profile has the unknown member "formt"/],
    [{ profile: 2 }, {}, /profile must be one of 1/],
    [{ format: { type: 'excel' } }, {}, /format\.type/],
    [{ format: { type: 'delimited', delimiter: ',,' } }, {}, /format\.delimiter does not have the required form/],
    [{ format: { type: 'delimited', names: ['a'] } }, {}, /format\.names stands beside a header/],
    [{ format: { type: 'json', records: 'customers' } }, {}, /format\.records does not have the required form/],
    [{}, { expiry: { from: 'e' } }, /columns\.expiry\.form must be one of MMYY, YYMM/],
    [{}, { expiry: { from: 'e', form: 'YMD' } }, /columns\.expiry\.form must be one of/],
    [{}, { expiry: { month: 'm' } }, /columns\.expiry\.year must be given, as string/],
    [{}, { card_number: undefined }, /columns\.card_number must be given/],
    [{}, { network_transaction_id: { from: 'nti' } }, /columns has the unknown member "network_transaction_id"/],
    [{}, { reference: 'id' }, /columns\.reference does not have the required form/],
    [{}, { reference: '{number}' }, /columns\.reference would put the card number into the results\. Write :last4/],
    [{ where: [{ field: 'a' }] }, {}, /where\.0 must have either is or is_not/],
    [{ drop: ['name'] }, {}, /columns\.cardholder_name\.from\.0 names a field that drop names/],
    [{}, { reference: '{^.id}' }, /columns\.reference begins with \^\., but only records of the format json/],
    [back({ from: 'number' }), {}, /return\.columns\.0\.from names card data/],
    [back({ from: 'cvv' }), {}, /return\.columns\.0\.from names a security code/],
    [{ ...back({ from: 'x' }), drop: ['x'] }, {}, /return\.columns\.0\.from names a field that drop names/],
    [back({ value: 'pan' }), {}, /return\.columns\.0\.value must be one of reference, outcome/],
    [
      back({ value: 'expiry_month' }),
      {},
      /return\.columns\.0\.form must be given for expiry_month\. Give one of M, MM/,
    ],
    [back({ value: 'expiry', form: 'MM' }), {}, /return\.columns\.0\.form must be given for expiry\./],
    [back({ value: 'brand', form: 'MM' }), {}, /return\.columns\.0\.form says nothing of brand/],
    [back({ value: 'bin', words: { 4: 'x' } }), {}, /return\.columns\.0\.words can not stand for bin/],
    [back({ value: 'outcome', words: { CREATED: 'x' } }), {}, /words has no text for UPDATED, .*, SKIPPED\. Give each/],
    [{ return: { columns: [] } }, {}, /return\.columns is wrong/],
  ])('names the wrong member by its path: %j %j', (changes, columns, message) => {
    expect(wrong(changes, columns)).toMatch(message)
  })

  it.each(['cvv', 'CVC2', 'card.cvc', 'card_cvv', 'cardCvv', 'Security Code', 'cid', 'CVV#2', 'verification_value'])(
    'refuses to read %s, a security code',
    field => {
      expect(wrong({}, { cardholder_name: { from: [field] } })).toMatch(/names a security code\. Leave it out/)
      expect(wrong({}, { reference: `{${field}}` })).toMatch(/names a security code/)
      expect(wrong({ where: [{ field, is: ['1'] }] })).toMatch(/names a security code/)
    },
  )

  it('refuses columns of fixed width that overlap: one would read what another one drops', () => {
    const of = (tail: number) =>
      wrong({
        format: {
          type: 'fixed',
          length: 30,
          columns: [
            { name: 'tail', start: tail, length: 6 },
            { name: 'number', start: 1, length: 16 },
            { name: 'code', start: 21, length: 3 },
          ],
        },
        drop: ['code'],
      })
    for (const tail of [14, 16, 18, 21, 23])
      expect(of(tail)).toMatch(/format\.columns\.\d overlaps format\.columns\.\d/)
    expect(of(24)).toBe('no error')
  })

  it('describes every member in its schema', () => {
    const undescribed: string[] = []
    const walk = (schema: unknown, path: string) => {
      if (typeof schema !== 'object' || schema === null) return
      const { properties = {}, description, ...rest } = schema as Record<string, Record<string, unknown>>
      for (const [name, member] of Object.entries(properties)) {
        if (!(member as { description?: string }).description) undescribed.push(`${path}.${name}`)
        walk(member, `${path}.${name}`)
      }
      for (const part of Object.values(rest)) for (const one of [part].flat()) walk(one, path)
    }
    walk(JSON.parse(JSON.stringify(Profile.toJSONSchema({ io: 'input' }))), 'profile')
    expect(undescribed).toEqual([])
  })
})
