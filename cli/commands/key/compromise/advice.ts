// What is left for people after a data key was exposed, by purpose: what a thief of the key can do, and what ends that.
import type { Purpose } from '../../../../src/vault/ring/key-ring.ts'

export const ADVICE: Record<Purpose, string> = {
  seal: 'Whoever also has these rows, from the database or a backup, read these card numbers. Tell your acquirer and the card networks; the file of --out has the tokens.',
  'before-image':
    'Whoever also has these rows read the card numbers of changes of the last day. They go by themselves within 24 h.',
  'network-token':
    'Whoever also has these rows read the numbers of these scheme tokens. Ask the network to replace them.',
  'three-ds':
    'Whoever also has these rows read authentication values, challenges, and the keys of contracts. Have the keys of 3-D Secure contracts replaced (`threeds-contract`).',
  webhook:
    'Whoever also has these rows can sign webhooks. Replace the secret of each endpoint (`events`); sealing them anew is not enough.',
  manifest:
    'Whoever also has these rows can compute totals of these migrations. Make the totals of open migrations anew.',
  'private-half':
    'Whoever also has these rows has the private halves of capture keys, signing keys, and the secrets of gateways. Run `tokenmill capture-key rotate ALIAS` for each alias, and retire the former keys once every page has the new one; run `tokenmill key rotate signing --now`; read about a compromise of a signing key in docs/keys.md; run `tokenmill key forget gateway KID` for each gateway, then `tokenmill schema upgrade`.',
  audit:
    'Whoever also owns the database can make rows of the audit that verify. Rows that left for AUDIT_URL before stand; compare by `tokenmill audit verify`.',
  digest:
    'Whoever also has these rows can test guesses of the requests that they stand for. The key lives as long as they do.',
  'api-key':
    'Whoever also owns the database can give any client an API key of their own. Run `tokenmill client api-key rotate NAME` for each client that is listed; `tokenmill key list` names those that are left. Until then, and until `tokenmill key destroy api-key VERSION` has destroyed the exposed version, API keys under it are believed: look for clients that came under it later. The key intake/1 is derived from api-key/1: run `tokenmill key rotate intake`, if intake/1 is in use.',
  intake:
    'Whoever also has these rows can test guesses of the bodies that they stand for. The key lives as long as they do.',
  owner:
    'Whoever also has these rows can test guesses of the ids that they stand for. The key lives as long as they do.',
  grant:
    'Whoever also owns the database could make clients, keys, capture keys, scopes and signing keys that tokenmill believes, and this command has coded these rows anew, too. Compare the file of --out with what you know (`client list`, `scope list`, `capture-key list`) and revoke what is not yours. From now on nothing that is coded under the exposed version is believed, and a confirmation that waited has to be asked for again.',
  analytics:
    'Whoever has the key and an analytics token can find the card number by trying them all. New values are given from now on; a stored value changes when its card is next presented. Tell everybody who keeps values that they change.',
  fingerprint:
    'Whoever also has fingerprints can find the card numbers by trying them all. No fingerprint under the exposed version is left of a token that keeps its number. Of the others they stay until their cards are presented, or until `tokenmill key retire fingerprint VERSION --forget`. Values of dry runs are erased after 24 hours. Keep backups from the thief, and restrict logins.',
}
