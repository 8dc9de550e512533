/** What all drawings have in common: colours of the theme that is on, axes, and how numbers are written. */
import type uPlot from "uplot";
import { spoken } from "./durations";

const GUTTER = 52;
const STEP_INCREMENTS = [1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 14_400, 43_200, 86_400, 604_800];

export interface Colours {
  ink: string;
  faint: string;
  line: string;
  stable: string;
  canary: string;
  bad: string;
  band: string;
  wash: string;
}

/** Return the colours of the theme that is on; a canvas knows no custom properties. */
export function coloursOf(element: Element): Colours {
  const style = getComputedStyle(element);
  const of = (name: string): string => style.getPropertyValue(`--${name}`).trim();
  return {
    ink: of("ink-soft"),
    faint: of("ink-faint"),
    line: of("line"),
    stable: of("stable"),
    canary: of("canary"),
    bad: of("bad"),
    band: `${of("canary")}38`,
    wash: of("idle-wash"),
  };
}

export function cursorOf(metric: string): uPlot.Cursor {
  return { drag: { x: false, y: false }, y: false, sync: { key: metric }, points: { size: 6 } };
}

const FONT = '11px "IBM Plex Sans", system-ui, sans-serif';

export function timeAxis(colours: Colours, hasLabels: boolean): uPlot.Axis {
  return {
    stroke: colours.faint,
    font: FONT,
    size: hasLabels ? 24 : 6,
    incrs: STEP_INCREMENTS,
    grid: { show: false },
    ticks: { show: hasLabels, stroke: colours.line, size: 4 },
    values: (_plot, splits) => splits.map((each) => (hasLabels ? spoken(each * 1000) : "")),
  };
}

export function valueAxis(colours: Colours, unit: string): uPlot.Axis {
  return {
    stroke: colours.faint,
    font: FONT,
    size: GUTTER,
    grid: { stroke: colours.line, width: 1 },
    ticks: { show: false },
    values: (_plot, splits) => splits.map((each) => shown(each, unit)),
  };
}

/** Return a value with two or three telling digits, and its percent sign. */
export function shown(value: number | null | undefined, unit: string): string {
  if (value == null) return "–";
  const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2;
  const text = String(Number(value.toFixed(digits)));
  return unit.startsWith("percent") ? `${text}\u00a0%` : text;
}
