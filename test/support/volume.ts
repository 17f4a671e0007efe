// How much a suite does: `npm test` takes the first number, `npm run soak` the larger second one.
export const SOAK = 'TOKENMILL_SOAK'

export function volume(usual: number, soaked: number): number {
  return process.env[SOAK] === '1' ? soaked : usual
}
