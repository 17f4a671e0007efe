// The owner of a row's card and the data that go with it: each member as its profile declares it, and the rejection of
// a row in another form.
import { describe, expect, it } from 'vitest'
import { readRows } from '../../../../producers/rows/file-rows.ts'
import { refusePanLookalikes } from '../../../../producers/rows/pan-lookalikes.ts'
import { parseProfile, withAccount } from '../../../../producers/rows/profile/profile.ts'
import { collect, inPieces } from '../bytes.ts'
import { failure, HEADER, PAN, profile, profileNamed, read, readOwners, readRaw } from './profiled.ts'

const by = (onFile: object, changes: object = {}) =>
  profile({ ...changes, on_file: { provider: 'shop', card_id: '{id}', ...onFile } })

/** A file with one row: the usual columns, and those of the test. */
const fileOf = (cells: Record<string, string>) =>
  `${[HEADER, ...Object.keys(cells)].join(',')}\n${['c1', PAN, '5', '2030', 'ADA', ...Object.values(cells)].join(',')}\n`

const one = async (onFile: object, cells: Record<string, string>, changes: object = {}) => {
  const file = fileOf(cells)
  const given = by(onFile, changes)
  const [row] = await readRaw(given, file)
  if (row?.rejected !== undefined) return row.rejected
  const [owner] = await readOwners(given, file)
  const { provider: _, card_id: __, ...members } = owner ?? {}
  return members
}

describe('the owner of a card', () => {
  it('is made of the ids that the provider gives, and each is kept as it is', async () => {
    const file = `${HEADER},cust,acct\nc1,${PAN},5,2030,ADA,=cus;1,0042\nc 2,${PAN},5,2030,,,\n`
    const given = by({ customer_id: '{cust}', provider_account: { from: 'acct' } })
    expect(await readOwners(given, file)).toEqual([
      { provider: 'shop', provider_account: '0042', customer_id: '=cus;1', card_id: 'c1' },
      { provider: 'shop', card_id: 'c 2' },
    ])
  })

  it('is none where a row has no id of its card: the row is a plain card', async () => {
    const file = `${HEADER},cust\n,${PAN},5,2030,ADA,cus_1\n`
    expect(await readOwners(by({ customer_id: '{cust}' }), file)).toEqual([undefined])
    const [row] = await readRaw(by({ customer_id: '{cust}' }), file)
    expect(row).toMatchObject({ rejected: undefined, onFile: undefined })
  })

  it('is refused with its row where only some fields of an id are filled', async () => {
    expect(await one({ card_id: '{id}-{more}' }, { more: '' })).toBe('field_required')
    expect(await one({ customer_id: '{cust}/{id}' }, { cust: '' })).toBe('field_required')
  })

  it('has a constant account that a profile or the command gives, and never two', () => {
    const given = by({})
    expect(withAccount(given, 'merchant-1').on_file?.provider_account).toEqual({ constant: 'merchant-1' })
    expect(() => withAccount(withAccount(given, 'a'), 'b')).toThrow('both say the account')
    expect(() => withAccount(profile(), 'a')).toThrow('needs a profile with on_file')
    for (const wrong of ['', 'x'.repeat(129), 'a\nb', PAN])
      expect(() => withAccount(given, wrong), wrong).toThrow('up to 128 characters')
  })

  it('costs a profile without it nothing: the record is the same, byte for byte', async () => {
    const file = `${HEADER}\nc1,${PAN},5,2030,ADA\n`
    const rows = async (given: ReturnType<typeof profile>) =>
      (await collect(readRows(inPieces(file), { format: 'csv', recordKind: 'token-create', profile: given }))).flat()
    const [plain] = await rows(profile())
    expect(plain?.json).toBe(
      `{"line":2,"reference":"c1","request":{"card":{"cardNumber":"${PAN}","expiryMonth":5,"expiryYear":2030,"cardholderName":"ADA"}}}`,
    )
    expect(plain?.onFile).toBeUndefined()
    const [owned] = await rows(by({}))
    expect(owned?.json).toBe(`${plain?.json.slice(0, -2)},"on_file":{"provider":"shop","card_id":"c1"}}}`)
    expect(owned?.onFile).toEqual([])
  })
})

describe('what travels with a card', () => {
  it('are network transaction ids as they are given, several only where a separator is declared', async () => {
    const ids = (text: string, column: object = {}, changes: object = {}) =>
      one({ network_transaction_ids: { from: 'nti', ...column } }, { nti: text }, changes)
    expect(await ids('016153570198200')).toEqual({ network_transaction_ids: ['016153570198200'] })
    expect(await ids('1 2|3')).toEqual({ network_transaction_ids: ['1 2|3'] })
    expect(await ids('01|02||03', { separator: '|' })).toEqual({ network_transaction_ids: ['01', '02', '03'] })
    expect(await ids('01| 02', { separator: '|' })).toEqual({ network_transaction_ids: ['01', ' 02'] })
    expect(await ids('01| 02', { separator: '|' }, { trim: true })).toEqual({ network_transaction_ids: ['01', '02'] })
    expect(await ids('')).toEqual({})
    expect(await ids('||', { separator: '|' })).toEqual({})
    expect(await ids('x'.repeat(65))).toBe('field_length')
    expect(await ids(Array(51).fill('1').join('|'), { separator: '|' })).toBe('field_length')
  })

  it('are network transaction ids in an array of JSON, which nothing else may be', async () => {
    const given = (separator?: string) =>
      by(
        { network_transaction_ids: { from: 'nti', ...(separator ? { separator } : {}) } },
        { format: { type: 'ndjson' }, trim: true },
      )
    const element = (more: object) =>
      `${JSON.stringify({ id: 'c1', number: PAN, month: '5', year: '2030', name: 'ADA', nti: '', ...more })}\n`
    const idsOf = async (nti: unknown, separator?: string) => {
      const [row] = await readRaw(given(separator), element({ nti }))
      if (row?.rejected) return row.rejected
      return (await readOwners(given(separator), element({ nti })))[0]?.network_transaction_ids
    }
    expect(await idsOf(['MCC1', '016153570198200', 42])).toEqual(['MCC1', '016153570198200', '42'])
    expect(await idsOf(['one, of its kind'])).toEqual(['one, of its kind'])
    expect(await idsOf([' 1 ', '', null, '2'])).toEqual(['1', '2'])
    expect(await idsOf(['1|2', '3'], '|')).toEqual(['1', '2', '3'])
    expect(await idsOf([])).toBeUndefined()
    expect(await idsOf('1')).toEqual(['1'])
    for (const wrong of [['a', ['b']], [{ id: 'a' }], [1.5], [true], ['a\0b'], 'a\0b', { 0: 'a' }])
      expect(await idsOf(wrong), JSON.stringify(wrong)).toBe('field_type')
    expect(await idsOf(Array(51).fill('1'))).toBe('field_length')
    const [row] = await readRaw(given(), element({ name: ['ADA'] }))
    expect(row?.rejected).toBe('field_type')
  })

  it('is a transaction link id whose case counts; one of unusual form is kept and counted', async () => {
    const rows = await Promise.all(
      ['-AbCdEfGhIjKlMnOpQrStU', 'AbCdEfGhIjKlMnOpQrStUvW', ''].map(async tlid => {
        const given = by({ transaction_link_id: { from: 'tlid' } })
        const [row] = await readRaw(given, fileOf({ tlid }))
        const [owner] = await readOwners(given, fileOf({ tlid }))
        return [owner?.transaction_link_id, row?.onFile?.traits]
      }),
    )
    expect(rows).toEqual([
      ['-AbCdEfGhIjKlMnOpQrStU', ['tlid']],
      ['AbCdEfGhIjKlMnOpQrStUvW', ['tlid', 'tlid_unusual']],
      [undefined, []],
    ])
  })

  it('is an amount in the declared unit, moved by the digits of its currency', async () => {
    const amount = (unit: string, text: string, currency: string) =>
      one({ first_amount: { from: 'amount', unit }, first_currency: { from: 'cur' } }, { amount: text, cur: currency })
    expect(await amount('major', '12.3', 'EUR')).toEqual({ first_amount: 1230, first_currency: 'EUR' })
    expect(await amount('major', '1200', 'JPY')).toEqual({ first_amount: 1200, first_currency: 'JPY' })
    expect(await amount('major', '1.234', 'KWD')).toEqual({ first_amount: 1234, first_currency: 'KWD' })
    expect(await amount('minor', '1230', 'EUR')).toEqual({ first_amount: 1230, first_currency: 'EUR' })
    expect(await amount('major', '', 'EUR')).toEqual({})
    expect(await amount('major', '1.5', 'JPY')).toBe('amount_exponent')
    expect(await amount('minor', '12.3', 'EUR')).toBe('field_format')
    expect(await amount('major', '1,5', 'EUR').catch(() => 'split')).toBe('row_fields')
    expect(await amount('minor', '-1', 'EUR')).toBe('field_range')
    expect(await amount('minor', '9007199254740992', 'EUR')).toBe('field_range')
    expect(await amount('major', '1', 'eur')).toBe('currency_unknown')
    expect(await amount('major', '1', '')).toBe('field_required')
  })

  it.each([
    ['YYYY-MM-DD', '2026-02-28', '2026-02-28'],
    ['YYYYMMDD', '20260228', '2026-02-28'],
    ['DD/MM/YYYY', '3/2/2026', '2026-02-03'],
    ['MM/DD/YYYY', '3/2/2026', '2026-03-02'],
    ['DD.MM.YYYY', '03.02.2026', '2026-02-03'],
    ['timestamp', '2026-02-28T23:30:00-05:00', '2026-03-01'],
    ['unix', '1772323200', '2026-03-01'],
  ])('is a date in the declared form %s', async (form, text, date) => {
    const dated = (value: string) => one({ agreed_on: { from: 'on', form } }, { on: value })
    expect(await dated(text)).toEqual({ agreed_on: date })
    for (const wrong of ['2026-02-30', '2026-2-3', '30/30/2026', '30.02.2026', '2026-02-30T00:00:00Z', '1e9', '-1'])
      expect(await dated(wrong), wrong).toBe('field_format')
    expect(await dated('')).toEqual({})
  })

  it('is an agreement in words that the profile maps', async () => {
    const words = { rec: 'RECURRING', mit: 'UNSCHEDULED' }
    const agreed = (text: string) =>
      one({ agreement: { from: 'kind', words }, agreed_by: { constant: 'ONLINE' } }, { kind: text })
    expect(await agreed('rec')).toEqual({ agreement: 'RECURRING', agreed_by: 'ONLINE' })
    expect(await agreed('')).toEqual({ agreed_by: 'ONLINE' })
    expect(await agreed('constructor')).toBe('field_value')
  })

  it('is whether a card is the default one: by words, or by a field that names it', async () => {
    const words = { is_default: { from: 'def', yes: ['Y', '1'], no: ['N'] } }
    expect(await one(words, { def: '1' })).toEqual({ is_default: true })
    expect(await one(words, { def: 'N' })).toEqual({ is_default: false })
    expect(await one(words, { def: '' })).toEqual({})
    expect(await one(words, { def: 'no' })).toBe('field_value')
    const named = { is_default: { from: 'def', equals: 'id' } }
    expect(await one(named, { def: 'c1' })).toEqual({ is_default: true })
    expect(await one(named, { def: 'pm_9' })).toEqual({ is_default: false })
    expect(await one(named, { def: '' })).toEqual({ is_default: false })
  })

  it('is a billing address; the zeros that a spreadsheet took are put back only where a length is declared', async () => {
    const address = (postal: object, country: object) => ({
      billing_address: {
        line1: 'street',
        postal_code: { from: 'zip', ...postal },
        country: { from: 'land', ...country },
      },
    })
    const cells = { street: '1 Rue', zip: '1234', land: 'France' }
    const given = by(address({ length: 5 }, { other: 'drop' }))
    expect((await readOwners(given, fileOf(cells)))[0]?.billing_address).toEqual({
      line1: '1 Rue',
      postal_code: '01234',
    })
    expect((await readRaw(given, fileOf(cells)))[0]?.repairs).toEqual(['country_dropped', 'postal_zeros'])
    expect(await one(address({}, {}), { ...cells, land: 'FR' })).toEqual({
      billing_address: { line1: '1 Rue', postal_code: '1234', country: 'FR' },
    })
    expect(await one(address({ length: 5 }, {}), { street: '', zip: '1-A', land: '' })).toEqual({
      billing_address: { postal_code: '1-A' },
    })
    expect(await one(address({}, {}), cells)).toBe('field_format')
    expect(await one(address({}, {}), { street: '', zip: '', land: '' })).toEqual({})
  })

  it('may not hold the card number of its row, and an id of 15 digits that could be one is kept', async () => {
    const ids = { network_transaction_ids: { from: 'nti' } }
    expect(await one(ids, { nti: '378282246310005' })).toEqual({ network_transaction_ids: ['378282246310005'] })
    expect(await one(ids, { nti: `x${PAN.slice(0, 8)} ${PAN.slice(8)}` })).toBe('reference_pan')
    expect(await one({ customer_id: '{cust}' }, { cust: PAN })).toBe('reference_pan')
  })

  it('may hold what could be any card number only in network ids and the id of the card', async () => {
    const other = '5555 5555-5555 4444'
    for (const member of [
      { customer_id: '{text}' },
      { provider_account: { from: 'text' } },
      { cardholder_name: { from: ['text'] } },
      { billing_address: { line1: 'text' } },
      { billing_address: { postal_code: { from: 'text' } } },
    ])
      expect(await one(member, { text: `old ${other}` }), JSON.stringify(member)).toBe('reference_pan')
    expect(await one({ customer_id: '{text}' }, { text: '4111111111111112' })).toEqual({
      customer_id: '4111111111111112',
    })
    const kept = { card_id: '{text}', transaction_link_id: { from: 'text' } }
    expect(await one(kept, { text: other })).toEqual({ transaction_link_id: other })
  })

  it('is compared with the cards that no worker sees, and with all where it is stored before a worker sees it', async () => {
    const given = by(
      { card_id: '{text}', network_transaction_ids: { from: 'nti' } },
      {
        where: [{ field: 'name', is_not: ['OLD'] }],
      },
    )
    const [gone, other] = ['5555555555554444', '378282246310005']
    const file = [
      `${HEADER},text,nti`,
      `c1,${gone},5,2030,OLD,,`,
      `c2,${other},13,2030,ADA,,`,
      `c3,${PAN},5,2030,ADA,x${gone},`,
      `c4,${PAN},5,2030,ADA,x,${other}`,
      `c5,${PAN},5,2030,ADA,x,016153570198200`,
      `c6,6011111111111117,5,2030,ADA,x${PAN},`,
    ]
    const options = { format: 'csv', recordKind: 'token-create', profile: given } as const
    const rows = await collect(readRows(inPieces(file.join('\n')), options))
    const reasons = (stored: boolean) => refusePanLookalikes(rows, { stored }).map(({ rejected }) => rejected)
    const unseen = [undefined, 'expiry_format', 'reference_pan', 'reference_pan', undefined]
    expect(reasons(false)).toEqual([...unseen, undefined])
    expect(reasons(true)).toEqual([...unseen, 'reference_pan'])
    expect(refusePanLookalikes(rows, { stored: false })[2]?.json).not.toContain(gone)
  })

  it('of a text that is too long, or holds control characters, costs its row', async () => {
    expect(await one({ customer_id: '{cust}' }, { cust: 'x'.repeat(128) })).toEqual({ customer_id: 'x'.repeat(128) })
    expect(await one({ customer_id: '{cust}' }, { cust: 'x'.repeat(129) })).toBe('field_length')
    expect(await one({ cardholder_name: { from: ['long'] } }, { long: 'x'.repeat(257) })).toBe('field_length')
    expect(await one({ customer_id: '{cust}' }, { cust: 'a\u0007' })).toBe('field_characters')
  })

  it('counts as converted where its characters are', async () => {
    const format = { type: 'delimited', encoding: 'iso-8859-1' }
    const given = by({ customer_id: '{cust}' }, { format })
    const [row] = await readRaw(given, Buffer.from(fileOf({ cust: 'é' }), 'latin1'))
    expect(row?.repairs).toEqual(['encoding'])
  })
})

describe('a profile with on_file', () => {
  it('is refused where it would keep the card number, or reads half of an amount', () => {
    expect(() => by({ card_id: '{number}' })).toThrow('makes an id of the card number')
    expect(() => by({ card_id: '{id}-{number:last4}' })).not.toThrow()
    expect(() => by({ cardholder_name: { from: ['number'] } })).toThrow('names the field of the card number')
    expect(() => by({ first_amount: { from: 'amount', unit: 'major' } })).toThrow('only one of first_amount')
    expect(() => by({ customer_id: '{^.id}' })).toThrow('only records of the format json have a parent')
    expect(() => by({ customer_id: '{cvv}' })).toThrow('names a security code')
    expect(() => by({ provider: 'my shop' })).toThrow('on_file.provider does not have the required form')
  })

  it('is refused in JSON where no record has the id of a card: a misspelt path would lose all owners', async () => {
    const wrong = parseProfile(
      'test.json',
      JSON.stringify({ ...profileNamed('stripe-json'), on_file: { provider: 'stripe', card_id: '{card_id}' } }),
    )
    const file = JSON.stringify({
      customers: [{ cards: [{ id: 'card_1', number: PAN, exp_month: 5, exp_year: 2030 }] }],
    })
    expect(await failure(wrong, file)).toContain('No record of the file has "card_id" (on_file.card_id)')
  })

  it('never echoes the name of the cardholder', async () => {
    const given = by({ cardholder_name: { from: ['full name'] } })
    expect(await read(given, fileOf({ 'full name': 'ADA L' }), { echo: ['full name'] }).catch(String)).toContain(
      'would put card data into the results',
    )
  })
})

describe('a form that a spreadsheet makes', () => {
  const columns = {
    customer_id: '{v}',
    provider_account: { from: 'v' },
    transaction_link_id: { from: 'v' },
    network_transaction_ids: { from: 'v' },
    billing_address: { postal_code: { from: 'v' } },
    card_id: '{id}-{v}',
    is_default: { from: 'v', equals: 'id' },
  }

  it.each(Object.entries(columns))('is not stored as %s, and the row names the member', async (name, column) => {
    for (const v of ['1.23E+15', '#N/A', '="123"', '03.04.2024', 'WAHR', 'NULL', '123.0']) {
      const given = by({ [name]: column })
      const file = fileOf({ v: v.replace(/^=.*"$/, text => `"${text.replaceAll('"', '""')}"`) })
      const [row] = await readRaw(given, file)
      const field = name === 'billing_address' ? 'billing_address.postal_code' : name
      expect([v, row?.rejected, row?.field]).toEqual([v, 'field_spreadsheet', `on_file.${field}`])
      expect(await one({ [name]: column }, { v: '00123' })).not.toBeTypeOf('string')
      expect(await one({ [name]: column }, { v }, { null_words: [v] })).not.toBe('field_spreadsheet')
    }
  })

  it('is refused in each id of a list', async () => {
    const nti = { network_transaction_ids: { from: 'nti', separator: '|' } }
    expect(await one(nti, { nti: '016153570198200|1.23E+15' })).toBe('field_spreadsheet')
    const known = await one(nti, { nti: '1|NULL|2' }, { null_words: ['NULL'] })
    expect(known).toEqual({ network_transaction_ids: ['1', '2'] })
  })

  it('is right in a field for which the profile says so, and only that form', async () => {
    const customer = { customer_id: '{cust}' }
    const as_is = { cust: ['exponent', 'nothing'] }
    expect(await one(customer, { cust: '1E-05' }, { as_is })).toEqual({ customer_id: '1E-05' })
    expect(await one(customer, { cust: 'NA' }, { as_is })).toEqual({ customer_id: 'NA' })
    expect(await one(customer, { cust: '#N/A' }, { as_is })).toBe('field_spreadsheet')
    expect(await one({ customer_id: '{cust}{more}' }, { cust: '1E-05', more: '1E-05' }, { as_is })).toBe(
      'field_spreadsheet',
    )
    expect(() => by(customer, { as_is: { other: ['exponent'] } })).toThrow('as_is names a field')
  })

  it('is no matter of names and addresses, unless it is a formula or an error', async () => {
    const free = { cardholder_name: { from: ['who'] }, billing_address: { line1: 'street', state: 'state' } }
    expect(await one(free, { who: 'None', street: '-', state: 'NA' })).toEqual({
      cardholder_name: 'None',
      billing_address: { line1: '-', state: 'NA' },
    })
    expect(await one(free, { who: '#NAME?', street: 'a', state: 'b' })).toBe('field_spreadsheet')
    expect(await one(free, { who: 'ADA', street: '#REF!', state: 'b' })).toBe('field_spreadsheet')
  })

  it('makes the owner of its row unknown, and is refused as a reference, too', async () => {
    const given = profile({ on_file: { provider: 'shop', card_id: '{id}' } }, { reference: '{cust}' })
    const rows = async (cells: Record<string, string>, id = 'c1') =>
      (
        await collect(
          readRows(inPieces(fileOf(cells).replace('c1', id)), {
            format: 'csv',
            recordKind: 'token-create',
            profile: given,
            owners: true,
          }),
        )
      ).flat()
    const [byOwner] = await rows({ cust: 'a' }, '1.2E+9')
    expect(byOwner).toMatchObject({ rejected: 'field_spreadsheet', field: 'on_file.card_id', owner: 'unknown' })
    expect(JSON.parse(byOwner?.json ?? '').rejected).toEqual({ reason: 'field_spreadsheet', field: 'on_file.card_id' })
    const [byReference] = await rows({ cust: 'May-26' })
    expect(byReference).toMatchObject({ field: 'columns.reference', owner: { cardId: 'c1' } })
  })
})
