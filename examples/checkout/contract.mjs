// The example's 3-D Secure contract, made at the first start with tokenmill's own command. A real shop gets its contract's
// id from whoever operates tokenmill, and sets CHECKOUT_CONTRACT.
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const COMMAND = process.env.CHECKOUT_TOKENMILL ?? fileURLToPath(new URL('../../bin/tokenmill.mjs', import.meta.url))
const NAME = 'checkout example'

export async function findContract({ entity, shop, threeDs }) {
  const run = async words =>
    JSON.parse((await promisify(execFile)(process.execPath, [COMMAND, 'threeds-contract', ...words, '--json'])).stdout)
  const known = await run(['list', '--entity', entity])
  const ours = known.find(({ name }) => name === NAME)
  if (ours) return ours.threeds_contract_id
  const terms = {
    entity,
    'directory-server': process.env.CHECKOUT_DIRECTORY_SERVER ?? 'http://127.0.0.1:8391/ds',
    'acquirer-bin': '400000',
    'acquirer-merchant-id': 'EXAMPLE1',
    mcc: '5499',
    country: 'GB',
    'merchant-name': 'Example shop',
    'requestor-url': shop,
    'notification-url': `${threeDs}/oidc/3ds-service/v2/return`,
  }
  const options = Object.entries(terms).flatMap(([name, value]) => [`--${name}`, value])
  return (await run(['add', NAME, ...options])).threeds_contract_id
}
