// The sign-off pack of real migrations: an encrypted file of a provider, with a dry run before, rejects, repairs and
// owners; both sides' totals, decisions, and a real OpenPGP signature of the counterparty.
import { createHash, createHmac } from 'node:crypto'
import { copyFile, readFile, rm, writeFile } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { decrypt, readMessage, readPrivateKey } from 'openpgp'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { encryptOpenpgp, makePgpKeyPair } from '../../../producers/rows/openpgp/decrypt.ts'
import { pdfWords } from '../../report/pdf-words.ts'
import { runCommand } from '../../support/command.ts'
import { describeStore } from '../../support/engines.ts'
import { type Installation, openInstallation } from '../../support/installation.ts'
import { testPan } from '../../support/test-pan.ts'
import { type Counterparty, hasGpg, openGpg, openLibrary } from './counterparty.ts'

const PROFILE = {
  profile: 1,
  name: 'wine-club',
  title: 'The export of a wine club',
  format: { type: 'delimited', delimiter: ';' },
  columns: {
    reference: '{card}',
    card_number: { from: 'number', remove: ' ' },
    expiry: { from: 'valid', form: 'MMYYYY' },
    cardholder_name: { from: ['name'], too_long: 'cut' },
  },
  on_file: {
    provider: 'wine-club',
    provider_account: { constant: 'acct-1' },
    customer_id: '{customer}',
    card_id: '{card}',
    network_transaction_ids: { from: 'nti' },
  },
}
const HEADER = 'card;customer;name;number;valid;nti;cvv'
const CVV = '7391'
const spaced = (pan: string) => pan.replace(/(....)(?=.)/g, '$1 ')
const rowOf = (n: number, pan = testPan(n)) =>
  `c_${n};cus_${n};Ada ${n === 2 ? 'x'.repeat(40) : 'Meyer'};${spaced(pan)};122030;nti-${n};${CVV}`

describeStore('a sign-off pack', engine => {
  let installation: Installation
  let keys: { publicKey: string; privateKey: string }
  const path = (name: string) => join(installation.dataDir, name)
  const tokenmill = async (args: string[]) => {
    const end = await runCommand(args, { env: installation.env, cwd: installation.dataDir })
    return { ...end, json: end.stdout.startsWith('{') ? JSON.parse(end.stdout) : undefined }
  }
  const withClient = (args: string[]) => tokenmill([...args, '--client', installation.clientFile, '--json'])
  const pack = (args: string[]) => withClient(['manifest', 'pack', ...args])
  const verify = (file: string) => withClient(['manifest', 'verify', file])
  const failing = async (file: string) => {
    const { json } = await verify(file)
    const all = [json.checks, ...json.batches.map((batch: { checks: object }) => batch.checks)]
    return all
      .flatMap(checks => Object.entries(checks))
      .flatMap(([name, verdict]) => (verdict === 'fails' ? [name] : []))
  }
  const read = async (name: string) => JSON.parse(await readFile(path(name), 'utf8'))

  async function* textOf(text: string) {
    yield Buffer.from(text)
  }
  async function encrypted(name: string, rows: readonly string[]): Promise<void> {
    const pieces: Buffer[] = []
    const text = textOf([HEADER, ...rows, ''].join('\n'))
    for await (const piece of encryptOpenpgp(text, keys.publicKey)) pieces.push(piece)
    await writeFile(path(name), Buffer.concat(pieces))
  }
  const migrate = (name: string, more: string[] = []) =>
    withClient(['migrate', name, '--from', 'wine-club.json', '--decrypt-key', 'recipient.asc', ...more])

  beforeAll(async () => {
    installation = await openInstallation(engine)
    await installation.openWorkers({ roles: ['bulk'] })
    keys = await makePgpKeyPair('receiver')
    await writeFile(path('recipient.asc'), keys.privateKey)
    await writeFile(path('sender.asc'), keys.publicKey)
    await writeFile(path('wine-club.json'), JSON.stringify(PROFILE))
    const bad = ['c_8;cus_8;Bad;4111 1111 1111 1112;122030;;999', 'c_9;cus_9;Bad;4111;122030;;999']
    const rows = [1, 2, 3, 4, 5].map(n => rowOf(n))
    await encrypted('first.csv.pgp', [...rows, rowOf(6, testPan(1)), ...bad])
    await encrypted(
      'second.csv.pgp',
      [11, 12].map(n => rowOf(n)),
    )
    const dry = await migrate('first.csv.pgp', ['--dry-run'])
    expect(dry.code, dry.stderr).toBe(3)
    // A migration between the dry run and the real run changes the outcomes of the real run.
    await encrypted('before.csv.pgp', [rowOf(3)])
    for (const args of [['before.csv.pgp'], ['first.csv.pgp', '--rejects', 'rejects.csv'], ['second.csv.pgp']]) {
      const [name = '', ...more] = args
      const done = await migrate(name, more)
      expect([0, 3], done.stderr).toContain(done.code)
    }
    const key = await tokenmill([
      'manifest',
      'total-key',
      '--migration',
      'spring',
      '--to',
      'sender.asc',
      '--out',
      'key.asc',
      '--json',
    ])
    expect(key.code, key.stderr).toBe(0)
  })
  afterAll(() => installation?.close())

  const BOTH = ['first.csv.pgp', 'second.csv.pgp']

  describe('without a total', () => {
    beforeAll(async () => {
      const made = await pack([...BOTH, '--migration', 'spring', '--no-total', '--out', 'plain.pack.json'])
      expect(made, made.stderr).toMatchObject({ code: 3, json: { rows: 10, exceptions: { rows: 2, open: 2 } } })
    })

    it('counts the results by brand, expiry year, outcome and reason', async () => {
      const found = await read('plain.pack.json')
      expect(found.cells).toEqual([
        { brand: 'VISA', expiry_year: '2030', outcome: 'CREATED', reason: null, rows: 6 },
        { brand: 'VISA', expiry_year: '2030', outcome: 'UNCHANGED', reason: null, rows: 1 },
        { brand: 'VISA', expiry_year: '2030', outcome: 'DUPLICATE', reason: null, rows: 1 },
        { brand: null, expiry_year: null, outcome: 'REJECTED', reason: 'pan_format', rows: 1 },
        { brand: null, expiry_year: null, outcome: 'REJECTED', reason: 'pan_luhn', rows: 1 },
      ])
      expect(found).toMatchObject({
        rows: 10,
        repairs: { number_separators: 9, name_cut: 1 },
        references: { ADDED: 7, UNCHANGED: 1 },
        on_file: { nti: 8 },
      })
      expect(found).not.toHaveProperty('total')
    })

    it('says who ran which command, by which keys the input was opened, and in what the run differs from its dry run', async () => {
      const [first, second] = (await read('plain.pack.json')).batches
      const { clientId } = installation.credentials.signingKey
      const fingerprint = (await readPrivateKey({ armoredKey: keys.privateKey })).getFingerprint().toUpperCase()
      expect(first.manifest).toMatchObject({
        operator: { client_id: clientId },
        pgp_keys: { decryption: fingerprint },
        options: { profile: 'wine-club' },
      })
      expect(first.manifest.command.slice(0, 4)).toEqual(['migrate', 'first.csv.pgp', '--from', 'wine-club.json'])
      expect(first.dry_run).toMatchObject({ same_options: true })
      expect(first.dry_run.differences).toEqual([
        { of: 'counts', name: 'CREATED', dry_run: 5, run: 4 },
        { of: 'counts', name: 'UNCHANGED', dry_run: 0, run: 1 },
        { of: 'references', name: 'ADDED', dry_run: 6, run: 5 },
        { of: 'references', name: 'UNCHANGED', dry_run: 0, run: 1 },
      ])
      expect(second).not.toHaveProperty('dry_run')
      expect(second.manifest).not.toHaveProperty('migration')
    })

    it('shows no number and no CVV, in the JSON or on paper', async () => {
      const words = pdfWords(await readFile(path('plain.pack.pdf')))
      const json = await readFile(path('plain.pack.json'), 'utf8')
      for (const text of [json, words, words.replaceAll('\n', '')]) {
        for (const n of [1, 2, 3, 4, 5, 11, 12]) expect(text).not.toContain(testPan(n))
        expect(text).not.toContain(spaced(testPan(1)))
        expect(text).not.toContain('411111111111111')
        expect(text).not.toMatch(new RegExp(`\\b${CVV}\\b`))
      }
    })

    it('says the same on paper, numbers its pages and has room for two signatures', async () => {
      const words = pdfWords(await readFile(path('plain.pack.pdf')))
      const sha256 = createHash('sha256')
        .update(await readFile(path('plain.pack.json')))
        .digest('hex')
      const all = words.replaceAll('\n', ' ')
      for (const word of [
        ...['Sign-off pack', 'Migration spring', `SHA-256 of the JSON: ${sha256}`, `Pack ${sha256}`],
        ...['pan_luhn', 'Exceptions: 2; 0 have a decision, 2 are open.', 'Total of both sides: none'],
        ...['counts: UNCHANGED', 'owner ADDED', 'repaired: number_separators', 'Page 1 of '],
        ...['For the sender of the cards', 'For the receiver of the cards'],
      ])
        expect(all).toContain(word)
    })

    it('holds as it was made, and tells every file that was changed since', async () => {
      expect(await failing('plain.pack.json')).toEqual([])
      const { code, json } = await verify('plain.pack.json')
      expect(code).toBe(0)
      expect(json).toMatchObject({ checks: { signature: 'holds', results_counts: 'holds', pdf_signature: 'holds' } })
      // Whoever has the client's public key alone can verify it.
      const { signing_key_file: file } = JSON.parse(await readFile(installation.clientFile, 'utf8'))
      const { d: _, ...publicJwk } = JSON.parse(await readFile(resolve(dirname(installation.clientFile), file), 'utf8'))
      await writeFile(path('public.jwk'), JSON.stringify(publicJwk))
      expect(await tokenmill(['manifest', 'verify', 'plain.pack.json', '--key', 'public.jwk'])).toMatchObject({
        code: 0,
      })
      const changed = async (name: string, change: (text: string) => string) => {
        await copyFile(path(name), path('kept'))
        await writeFile(path(name), change(await readFile(path(name), 'latin1')), 'latin1')
        const found = await failing('plain.pack.json')
        await copyFile(path('kept'), path(name))
        return found
      }
      const results = 'first.csv.pgp.results.csv'
      expect(await changed(results, text => text.replace('UNCHANGED', 'CREATED'))).toEqual([
        'results_counts',
        'results_digest',
      ])
      expect(await changed('rejects.csv', text => `${text}\n`)).toEqual(['rejects_digest'])
      expect(await changed('first.csv.pgp', text => `${text}x`)).toEqual(['input_digest'])
      expect(await changed('first.csv.pgp.dry-run.manifest.json', text => `${text} `)).toEqual(['dry_run'])
      expect(await changed('second.csv.pgp.manifest.json', text => text.replace('"rows": 2', '"rows": 3'))).toEqual([
        ...['manifest_digest', 'manifest_signature', 'manifest_content'],
      ])
      expect(await changed('second.csv.pgp.manifest.json', () => 'anything')).toEqual([
        ...['manifest_digest', 'manifest_signature', 'manifest_content'],
      ])
      expect(await changed('plain.pack.pdf', text => `${text} `)).toEqual(['pdf_signature'])
      expect(await changed('plain.pack.json', text => text.replace('"rows": 6', '"rows": 7'))).toEqual([
        ...['signature', 'sums', 'results_counts', 'pdf_digest'],
      ])
      expect(await changed('plain.pack.json', text => text.replace('\n  "batches"', '\n   "batches"'))).toEqual([
        ...['signature', 'form', 'pdf_digest'],
      ])
      expect(await failing('plain.pack.json')).toEqual([])
    })

    it('tells a PDF that the client signed for another pack', async () => {
      const other = await pack([...BOTH, '--no-total', '--out', 'other.pack.json'])
      expect(other.code, other.stderr).toBe(3)
      const pdfs = ['.pdf', '.pdf.jws']
      for (const pdf of pdfs) {
        await copyFile(path(`plain.pack${pdf}`), path(`kept${pdf}`))
        await copyFile(path(`other.pack${pdf}`), path(`plain.pack${pdf}`))
      }
      expect(await failing('plain.pack.json')).toEqual(['pdf_digest'])
      for (const pdf of pdfs) await copyFile(path(`kept${pdf}`), path(`plain.pack${pdf}`))
      expect(await failing('plain.pack.json')).toEqual([])
    })

    it('is refused for results that are not those of their manifest', async () => {
      const name = 'second.csv.pgp.results.csv'
      await copyFile(path(name), path('kept'))
      await writeFile(path(name), (await readFile(path(name), 'utf8')).replace('VISA', 'JCB'))
      const refused = await pack([...BOTH, '--migration', 'spring', '--no-total', '--out', 'refused.pack.json'])
      await copyFile(path('kept'), path(name))
      expect(refused.code).toBe(1)
      expect(refused.stderr).toMatch(/second\.csv\.pgp\.manifest\.json does not hold: results_digest/)
      await expect(readFile(path('refused.pack.json'))).rejects.toThrow('ENOENT')
    })
  })

  describe('with both totals and decisions', () => {
    const DECISIONS = [
      'reference,line,batch_id,decision,by,on,note',
      'c_8,,,dropped,Ann Lee,2030-01-31,"closed, says the shop"',
      'c_77,,,dropped,Ann Lee,2030-01-31,',
      '',
    ].join('\n')
    const args = [...BOTH, '--migration', 'spring']

    async function theirDigests(): Promise<string[]> {
      const message = await readMessage({ armoredMessage: await readFile(path('key.asc'), 'utf8') })
      const decryptionKeys = await readPrivateKey({ armoredKey: keys.privateKey })
      const { data } = await decrypt({ message, decryptionKeys })
      const key = Buffer.from(String(data).trim(), 'hex')
      const cards = [1, 2, 3, 4, 5, 11, 12].map(n => [testPan(n), `c_${n}`]).concat([[testPan(1), 'c_6']])
      return cards
        .map(([pan, reference]) => createHmac('sha256', key).update(`${pan}\n203012\n${reference}`).digest('hex'))
        .sort()
    }
    const sumOf = (digests: readonly string[]) =>
      createHash('sha256')
        .update(digests.map(digest => `${digest}\n`).join(''))
        .digest('hex')

    it('compares the totals, and says what is decided and what is open', async () => {
      await writeFile(path('decisions.csv'), DECISIONS)
      const digests = await theirDigests()
      await writeFile(path('theirs.json'), JSON.stringify({ rows: 8, sha256: sumOf(digests), by_brand: {} }))
      const made = await pack([...args, '--decisions', 'decisions.csv', '--their-total', 'theirs.json'])
      expect(made, made.stderr).toMatchObject({
        code: 3,
        json: {
          pack: 'spring.pack.json',
          total: { rows: 8, equal: true },
          exceptions: { rows: 2, decided: 1, open: 1 },
        },
      })
      const found = await read('spring.pack.json')
      expect(found.exceptions).toMatchObject({
        by_decision: [{ decision: 'dropped', rows: 1 }],
        listed_open: [{ line: 9, reference: 'c_9', kind: 'REJECTED', reason: 'pan_format' }],
        listed_decided: [{ line: 8, reference: 'c_8', by: 'Ann Lee', on: '2030-01-31', note: 'closed, says the shop' }],
        unused_decisions: { count: 1, lines: [3] },
      })
      expect(pdfWords(await readFile(path('spring.pack.pdf')))).toContain('Total of both sides: equal.')
      const { code, json } = await verify('spring.pack.json')
      expect(code).toBe(0)
      expect(json.checks).toMatchObject({ comparison: 'holds', decisions_digest: 'holds', their_total_digest: 'holds' })
      await writeFile(path('decisions.csv'), DECISIONS.replace('c_8', 'c_9'))
      expect(await failing('spring.pack.json')).toEqual(['results_counts', 'decisions_digest'])
      await writeFile(path('decisions.csv'), DECISIONS)
    })

    it('lists the rows that the total leaves out as exceptions, and takes decisions about them', async () => {
      await encrypted('kept.csv.pgp', [rowOf(21), rowOf(1).replace('122030', '112031').replace('c_1;', 'c_22;')])
      await migrate('kept.csv.pgp', ['--on-conflict', 'keep'])
      await tokenmill(['manifest', 'total-key', '--migration', 'kept', '--to', 'sender.asc', '--out', 'kept.asc'])
      await writeFile(path('kept.csv'), 'line,decision,by,on\n3,keep the stored expiry,Ann Lee,2030-01-31\n')
      const made = await pack(['kept.csv.pgp', '--migration', 'kept', '--decisions', 'kept.csv'])
      expect(made, made.stderr).toMatchObject({
        code: 0,
        json: { rows: 2, total: { rows: 1 }, exceptions: { decided: 1 } },
      })
      const { exceptions, total } = await read('kept.pack.json')
      expect(total.vault.exceptions).toMatchObject({ rows: 1, by_reason: { expiry_differs: 1 } })
      expect(exceptions.listed_decided).toMatchObject([{ kind: 'total', line: 3, reference: 'c_22', by: 'Ann Lee' }])
      expect(await failing('kept.pack.json')).toEqual([])
    })

    it('says that the totals differ where a card is missing', async () => {
      const digests = await theirDigests()
      const words = ['--their-total', sumOf(digests.slice(1)), '--their-count', '7', '--out', 'differs.pack.json']
      const made = await pack([...args, ...words])
      expect(made, made.stderr).toMatchObject({ code: 3, json: { total: { equal: false } } })
      expect(pdfWords(await readFile(path('differs.pack.pdf')))).toContain('Total of both sides: DIFFERENT.')
    })

    describe.each([
      { by: 'gpg', open: openGpg, missing: !hasGpg },
      { by: 'the library', open: openLibrary, missing: false },
    ])('signed by the counterparty with $by', ({ by, open, missing }) => {
      let counterparty: Counterparty
      beforeAll(async () => {
        if (!missing) counterparty = await open('Their Security')
      })
      afterAll(() => counterparty?.close())

      it.skipIf(missing)(
        'keeps the signature that holds, refuses any other, and is not replaced any more',
        async () => {
          const name = `signed-${by.length}.pack.json`
          const made = await pack([...args, '--no-total', '--out', name])
          expect(made.code, made.stderr).toBe(3)
          const signature = await counterparty.sign(path(name))
          const sign = (file: string) =>
            pack([...args, '--out', name, '--signature', file, '--counterparty', counterparty.publicKey])
          const foreign = await counterparty.sign(path('wine-club.json'))
          await copyFile(foreign, path('foreign.asc'))
          const refused = await sign(path('foreign.asc'))
          expect(refused.code).toBe(1)
          expect(refused.stderr).toMatch(/is no valid signature over .* by the key/)
          const again = await counterparty.sign(path(name))
          const pdf = name.replace('.json', '.pdf')
          for (const part of ['', '.jws']) await copyFile(path(`${pdf}${part}`), path(`unsigned.pdf${part}`))
          const done = await sign(again === signature ? signature : again)
          expect(done, done.stderr).toMatchObject({
            code: 3,
            json: { countersignature: { record: name.replace('.json', '.countersigned.json') } },
          })
          const other = await openLibrary('Somebody else')
          const signedByOther = await other.sign(path(name))
          const second = ['--signature', signedByOther, '--counterparty', other.publicKey]
          const replacing = await pack([...args, '--out', name, ...second])
          expect(replacing.stderr).toMatch(/was signed by the key [0-9A-F]+\. Move .*countersigned\.json away/)
          const foreignBatches = await pack([BOTH[0] ?? '', '--migration', 'spring', '--out', name, ...second])
          expect(foreignBatches.stderr).toMatch(/is the pack of other batches/)
          await other.close()
          const { json } = await verify(name)
          expect(json).toMatchObject({ holds: true, checks: { counterparty: 'holds', pdf_signature: 'holds' } })
          const words = pdfWords(await readFile(path(pdf)))
          expect(words).toContain('Their Security')
          expect(words).toContain(done.json.countersignature.fingerprint)
          for (const part of ['', '.jws']) await copyFile(path(`unsigned.pdf${part}`), path(`${pdf}${part}`))
          expect(await failing(name)).toEqual(['pdf_digest'])
          expect((await sign(await counterparty.sign(path(name)))).code).toBe(3)
          expect(await failing(name)).toEqual([])
          const replaced = await pack([...args, '--no-total', '--out', name])
          expect(replaced.code).toBe(64)
          expect(replaced.stderr).toMatch(/was signed by the counterparty.*--out FILE/)
          const record = name.replace('.json', '.countersigned.json')
          const text = await readFile(path(record), 'utf8')
          await writeFile(path(record), text.replace('Their Security', 'Somebody else'))
          expect(await failing(name)).toEqual(['pdf_digest', 'counterparty'])
        },
      )
    })
  })

  it('takes batches by id, and a name and a total only as they fit', async () => {
    const { batch_id: id } = await read('second.csv.pgp.manifest.json')
    const made = await pack([id, '--no-total'])
    expect(made, made.stderr).toMatchObject({
      code: 0,
      json: { pack: 'second.csv.pgp.pack.json', batches: 1, rows: 2 },
    })
    const refused = async (words: string[], pattern: RegExp) => {
      const end = await pack(words)
      expect(end.stderr).toMatch(pattern)
      expect(end.code).toBe(64)
    }
    await refused([id], /needs the name of the migration.*--no-total/)
    await refused([...BOTH, '--no-total'], /several batches needs a name/)
    await refused(['first.csv.pgp.dry-run.manifest.json', '--no-total'], /of a dry run/)
    await refused(['nothing.csv', '--no-total'], /neither a file nor a batch/)
    await refused(['--migration', 'autumn', '--no-total'], /no manifest of migration autumn/)
    await refused([id, '--no-total', '--their-total', 'a'.repeat(64), '--their-count', '1'], /Leave --no-total out/)
    await refused(
      [id, '--no-total', '--dry-run', 'first.csv.pgp.dry-run.manifest.json'],
      /no manifest of a dry run over/,
    )
    await refused([id, '--no-total', '--signature', 'x'], /go together/)
  })

  it('holds where the files are gone, and says which', async () => {
    const name = 'gone.pack.json'
    await pack(['second.csv.pgp', '--no-total', '--out', name])
    for (const file of ['second.csv.pgp', 'second.csv.pgp.results.csv']) await rm(path(file))
    const { code, json } = await verify(name)
    expect(code).toBe(0)
    expect(json.checks).toMatchObject({ results_counts: 'absent', sums: 'holds' })
    expect(json.batches[0].checks).toMatchObject({ input_digest: 'absent', results_digest: 'absent', rows: 'holds' })
  })
})
