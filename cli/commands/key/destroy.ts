// `tokenmill key destroy PURPOSE VERSION`: erases one version of a data key, after it is proved that nothing in the
// store needs it.
import { DESTROY, destroyKey, type Hindrance } from '../../../src/acts/key/destroy-key.ts'
import { sealingPurpose } from '../../../src/store/reseal/sealed-columns.ts'
import type { UnderKey } from '../../../src/store/reseal/sealed-rows.ts'
import { THREE_DS_RETENTION } from '../../../src/store/three-ds/three-ds-retention.ts'
import type { JsonOption } from '../../command.ts'
import { confirm } from '../../confirm.ts'
import { Stop } from '../../exit.ts'
import { openVault, withSession } from '../../open/open.ts'
import { byOf, type OperatorOptions } from '../../open/operator.ts'
import { moment, print, type Terminal } from '../../terminal.ts'
import { claimed, secondOperatorOf } from './second-operator.ts'

type DestroyOptions = JsonOption & OperatorOptions & { backupsAreGone?: boolean; yes?: boolean }

export function destroy(terminal: Terminal, purpose: string, version: number, options: DestroyOptions): Promise<void> {
  const name = `${purpose}/${version}`
  return withSession(terminal, async session => {
    const vault = await openVault(session)
    if (!options.yes) await confirm(terminal, `Destroy ${name}, for good?`)
    const deed = { action: DESTROY, subject: name }
    const by = await byOf(deed, options, vault.store, vault.ring)
    const areBackupsGone = options.backupsAreGone === true
    const second = secondOperatorOf(vault, claimed(deed, areBackupsGone), by)
    const { backupDays } = session.config
    const asked = { purpose, version, backupDays, areBackupsGone }
    const verdict = await destroyKey(vault, asked, by, second.use)
    if ('refused' in verdict && verdict.refused === 'unconfirmed') return second.ask(terminal, options)
    if ('refused' in verdict) throw new Stop(refusalText(name, purpose, verdict))
    print(terminal, options, { purpose, version, state: 'DESTROYED' }, `${name} is destroyed.`)
  })
}

function refusalText(name: string, purpose: string, hindrance: Hindrance): string {
  switch (hindrance.refused) {
    case 'unknown':
      return `There is no key ${name}; \`tokenmill key list\` lists them.`
    case 'pending':
      return `${name} is about to come into use; it can be destroyed only after another version has taken its place.`
    case 'unconfirmed':
      return `No second operator has confirmed that ${name} is destroyed.`
    case 'active':
      return isResealed(purpose)
        ? `${name} is in use; run \`tokenmill key rotate ${purpose}\` and \`tokenmill key reseal ${purpose}\` first.`
        : `${name} is in use; run \`tokenmill key rotate ${purpose}\` first.`
    case 'destroyed':
      return `${name} was destroyed before.`
    case 'hashes':
      return `${name} makes keyed hashes, and the stored ones couldn't be compared without it; it stays.`
    case 'not_resealed':
      return `It isn't proved that nothing is left under ${name}; run \`tokenmill key reseal ${purpose} --follow\` first.`
    case 'in_use': {
      const rows = hindrance.under.map(({ column, rows }) => `${rows.toLocaleString('en')} in ${column}`).join(', ')
      return `Rows still name ${name}: ${rows}; ${howRowsEnd(purpose, hindrance.under)}.`
    }
    case 'too_soon':
      return isResealed(purpose)
        ? `The pass that found nothing under ${name} must be 24 h old; try again after ${moment(hindrance.from)}.`
        : `${name} must be out of use for 24 h; try again after ${moment(hindrance.from)}.`
    case 'backups':
      return `Backups from before ${name} was out of use are kept until ${moment(hindrance.from)} (TOKENMILL_BACKUP_DAYS), and need it. Destroy these backups and say --backups-are-gone, or wait.`
  }
}

const ROWS_STAY = 'these rows stay, and the version must stay with them'

/** For purposes whose rows no pass encrypts anew. */
const HOW_ROWS_END: Readonly<Record<string, string>> = {
  'before-image': 'copies (before_image) go by themselves within 24 h',
  'api-key': 'run `tokenmill client api-key rotate NAME` for each client that `tokenmill key list` names',
  grant: 'run `tokenmill key reseal grant`',
  owner: ROWS_STAY,
  intake: ROWS_STAY,
  receipt:
    'receipts are kept for TOKENMILL_RECEIPT_DAYS, results and events for 7 days; run this command again when these are gone',
}

/** How long rows with digests are kept, by their column. */
const DIGESTS_END: Readonly<Record<string, string>> = {
  'receipt.request_digest': 'receipts are kept for TOKENMILL_RECEIPT_DAYS',
  'authentication.request_digest': `authentications of 3-D Secure are kept for ${THREE_DS_RETENTION.authenticationDays} days`,
}

function howRowsEnd(purpose: string, under: readonly UnderKey[]): string {
  if (purpose !== 'digest')
    return (
      HOW_ROWS_END[purpose] ?? `run \`tokenmill key reseal ${purpose} --follow\`, and ${HOW_ROWS_END['before-image']}`
    )
  const kept = under.flatMap(({ column }) => DIGESTS_END[column] ?? [])
  return `${kept.join(', and ')}; run this command again when these are gone`
}

/** False for purposes whose rows end by themselves, or keep their version. */
const isResealed = (purpose: string) => sealingPurpose(purpose) !== undefined
