// `tokenmill audit show`: one numbered row of the audit with all that it says, and whether the proof that it keeps is right.
import { type CheckPersonProof, checkProof, type ProofVerdict } from '../../../src/audit/proof.ts'
import * as audits from '../../../src/store/access/audits.ts'
import type { JsonOption } from '../../command.ts'
import { Stop } from '../../exit.ts'
import { openCommandStore, withSession } from '../../open/open.ts'
import { facts, print, type Terminal } from '../../terminal.ts'

export function run(
  terminal: Terminal,
  seq: number,
  options: JsonOption,
  ofPerson: CheckPersonProof | undefined,
): Promise<void> {
  return withSession(terminal, async session => {
    const { store } = await openCommandStore(session)
    const [row] = await audits.listChained(store, { after: seq - 1, to: seq, limit: 1 })
    if (!row) throw new Stop(`No row has the number ${seq}; \`tokenmill audit list\` lists rows.`)
    const { auditId, at, actor, host, action, subject, outcome, detail, hash, mac, keyVersion } = row
    const proved = await checkProof(store, row, ofPerson)
    const codes = { hash: hash.toString('hex'), mac: mac.toString('hex'), key_version: keyVersion }
    const known = { seq, audit_id: auditId, at, actor, host, action, subject, outcome, detail }
    const text = facts({
      number: String(seq),
      at,
      actor,
      host: host ?? undefined,
      action,
      subject,
      outcome,
      ...Object.fromEntries(Object.entries(detail).map(([key, value]) => [key, textOf(value)])),
      hash: codes.hash,
      proved: sentence(proved),
    })
    print(terminal, options, { ...known, ...codes, proved }, text)
  })
}

const textOf = (value: unknown) => (typeof value === 'string' ? value : JSON.stringify(value))

function sentence(verdict: ProofVerdict): string {
  if (verdict.proof === 'none') return 'no: the row keeps no signature'
  if (verdict.proof === 'wrong') return `WRONG: ${verdict.why}`
  const { by, others } = verdict
  if (!others) return `yes: by ${by}`
  return `DOUBTFUL: by ${by}; but it was used once, and other rows keep it, too: audit_id ${others.join(', ')} (--json)`
}
