const UNITS: readonly [seconds: number, sign: string][] = [
  [86_400, "d"],
  [3600, "h"],
  [60, "m"],
  [1, "s"],
];

/** Return `2m 05s` for 125,000 milliseconds: the two largest units, so that the width hardly changes. */
export function spoken(milliseconds: number): string {
  const seconds = Math.max(0, Math.floor(milliseconds / 1000));
  const first = UNITS.findIndex(([size]) => seconds >= size);
  if (first < 0) return "0s";
  const [large, sign] = UNITS[first]!;
  const next = UNITS[first + 1];
  if (!next) return `${seconds}s`;
  const rest = Math.floor((seconds % large) / next[0]);
  return `${Math.floor(seconds / large)}${sign} ${String(rest).padStart(2, "0")}${next[1]}`;
}
